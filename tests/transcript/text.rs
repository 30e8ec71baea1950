// SPDX-License-Identifier: Apache-2.0
//! The words of a story: types, resources, durations.
//!
//! Owns their notation. Does not know their use.

use std::time::Duration;

use distributary::xds::TypeUrl;

/// The type that a short name stands for; anything with a dot in it is a full name.
pub(crate) fn type_url(word: &str) -> TypeUrl {
    let full = match word {
        "address" => "istio.workload.Address",
        "cds" => "envoy.config.cluster.v3.Cluster",
        "cds_v2" => "envoy.api.v2.Cluster",
        "ecds" => "envoy.config.core.v3.TypedExtensionConfig",
        "eds" => "envoy.config.endpoint.v3.ClusterLoadAssignment",
        "eds_v2" => "envoy.api.v2.ClusterLoadAssignment",
        "lds" => "envoy.config.listener.v3.Listener",
        "leds" => "envoy.config.endpoint.v3.LbEndpoint",
        "leds_collection" => "envoy.config.endpoint.v3.LbEndpointCollection",
        "nds" => "istio.networking.nds.v1.NameTable",
        "pcds" => "istio.mesh.v1alpha1.ProxyConfig",
        "rds" => "envoy.config.route.v3.RouteConfiguration",
        "rtds" => "envoy.service.runtime.v3.Runtime",
        "sds" => "envoy.extensions.transport_sockets.tls.v3.Secret",
        "srds" => "envoy.config.route.v3.ScopedRouteConfiguration",
        "vhds" => "envoy.config.route.v3.VirtualHost",
        "workload" => "istio.workload.Workload",
        "debug" => "istio.io/debug/syncz",
        "connections" => "istio.io/connections",
        "health" => "istio.v1.HealthInformation",
        full if full.contains('.') || full == "none" => full,
        other => panic!("`{other}` is no type"),
    };
    TypeUrl::new(full)
}

/// A line with the types in names of new style written in full: `xdstp://a/EDS/x` is the short form.
pub(crate) fn full(line: &str) -> String {
    ["ADDRESS", "CDS", "EDS", "LEDS", "LEDS_COLLECTION", "LDS", "RDS"]
        .iter()
        .fold(line.to_owned(), |line, short| {
            let full = type_url(&short.to_lowercase());
            line.replace(&format!("/{short}/"), &format!("/{}/", full.full_name()))
        })
}

/// A resource as a story writes it: `name@label`, then options: `:eds` or `:eds=name` (a cluster that takes its endpoints
/// from EDS), `:rds=name` (a listener that takes its route from RDS), `:to=name` (a route that leads to a cluster), `:ttl=10s`, `:aka=alias` (repeats), `:aside` (exists, but the wildcard does not cover it); at the end
/// `:leads=name` (its body points to a collection of endpoints; in a listener: its address, `0.0.0.0:80`). The label `empty` stands for a body without a byte.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Spec {
    pub(crate) name: String,
    pub(crate) label: String,
    pub(crate) endpoints: Option<String>,
    pub(crate) ttl: Option<Duration>,
    pub(crate) aliases: Vec<String>,
    pub(crate) aside: bool,
    pub(crate) leads: Option<String>,
    pub(crate) route: Option<String>,
    pub(crate) target: Option<String>,
}

impl Spec {
    pub(crate) fn parse(word: &str) -> Self {
        let (name, rest) = word.split_once('@').unwrap_or_else(|| panic!("`{word}` has no label"));
        let (rest, leads) = match rest.split_once(":leads=") {
            Some((rest, name)) => (rest, Some(name.to_owned())),
            None => (rest, None),
        };
        // The colon of a name of new style ends no option.
        let rest = rest.replace("://", "\0");
        let mut options = rest.split(':');
        let mut spec = Self {
            name: name.to_owned(),
            label: options.next().unwrap_or_default().to_owned(),
            endpoints: None,
            ttl: None,
            aliases: Vec::new(),
            aside: false,
            leads,
            route: None,
            target: None,
        };
        for option in options {
            match option.split_once('=').unwrap_or((option, "")) {
                ("eds", "") => spec.endpoints = Some(name.to_owned()),
                ("eds", service) => spec.endpoints = Some(service.to_owned()),
                ("ttl", text) => spec.ttl = Some(duration(text)),
                ("aka", alias) => spec.aliases.push(alias.replace('\0', "://")),
                ("rds", route) => spec.route = Some(route.to_owned()),
                ("to", cluster) => spec.target = Some(cluster.to_owned()),
                ("aside", "") => spec.aside = true,
                _ => panic!("`{option}` is no option of a resource"),
            }
        }
        spec
    }
}

/// `300ms`, `2s`.
pub(crate) fn duration(word: &str) -> Duration {
    let (number, unit) = word.split_at(word.find(|c: char| !c.is_ascii_digit()).unwrap_or(word.len()));
    let number = number.parse().unwrap_or_else(|_| panic!("`{word}` is no duration"));
    match unit {
        "ms" => Duration::from_millis(number),
        "s" => Duration::from_secs(number),
        _ => panic!("`{word}` is no duration"),
    }
}

/// The words between brackets.
pub(crate) fn listed(text: &str) -> Vec<&str> {
    let inner = text.trim().strip_prefix('[').and_then(|text| text.strip_suffix(']'));
    let inner = inner.unwrap_or_else(|| panic!("`{text}` is no list in brackets"));
    inner.split_whitespace().map(|word| word.trim_matches('\'')).collect()
}

/// The content of a response in the notation in which expectations are compared: everything sorted.
pub(crate) fn said(mut items: Vec<String>, removed: Vec<String>, errors: Vec<String>) -> String {
    items.sort();
    let list = |mark: &str, mut words: Vec<String>| {
        words.sort();
        if words.is_empty() {
            String::new()
        } else {
            format!(" {mark}[{}]", words.join(" "))
        }
    };
    format!("[{}]{}{}", items.join(" "), list("-", removed), list("!", errors))
}

/// An expectation `[a@1 b@2] -[c] ![d=5]`, any part of which may be left out, in that notation.
pub(crate) fn expected(text: &str) -> String {
    let (text, errors) = match text.split_once("![") {
        Some((text, errors)) => (text.trim(), format!("[{errors}")),
        None => (text.trim(), "[]".to_owned()),
    };
    let (items, removed) = match text.split_once("-[") {
        Some((items, removed)) => (items.trim(), format!("[{removed}")),
        None => (text, "[]".to_owned()),
    };
    let owned = |text: &str| listed(text).into_iter().map(str::to_owned).collect();
    let items = if items.is_empty() { "[]" } else { items };
    said(owned(items), owned(&removed), owned(&errors))
}
