// SPDX-License-Identifier: Apache-2.0
//! What the admin address of a relay answers, as far as it is shown.
//!
//! Owns which paths are asked for what. Compares nothing.

use std::collections::BTreeMap;

use crate::answers::{Nacks, Resources};
use crate::cli::asking::{Bounds, Relay, encoded};

pub(super) const CLUSTERS: &str = "/clusters?format=json";

/// Whether a relay can serve clients, and how many it has.
#[derive(Debug)]
pub(super) struct Health {
    pub(super) ready: bool,
    /// `READY`, or another word and the reason.
    pub(super) state: String,
    pub(super) version: String,
    pub(super) connections: u64,
    pub(super) streams: u64,
}

impl Health {
    pub(super) fn of(relay: Relay<'_>) -> anyhow::Result<Self> {
        let (ready, state) = match relay.ask("GET", "/ready", b"", Bounds::LINE)? {
            (503, said) => (false, said),
            answer => (true, relay.body(answer)?.trim_end().to_owned()),
        };
        let metrics = relay.text("/metrics")?;
        Ok(Self {
            ready,
            state,
            version: label(&metrics, "distributary_build_info", "version").unwrap_or_default(),
            connections: sum(&metrics, "distributary_connections"),
            streams: sum(&metrics, "distributary_streams"),
        })
    }
}

/// Returns what clients reject of one content, and how many others have it.
pub(super) fn nacks_of(relay: Relay<'_>, type_url: &str, name: &str, version: &str) -> anyhow::Result<Nacks> {
    let [type_url, name, version] = [type_url, name, version].map(encoded);
    relay.json(&format!("/nacks?type={type_url}&name={name}&version={version}"))
}

/// Returns what a relay has of these types.
pub(super) fn resources<'a>(relay: Relay<'_>, types: impl Iterator<Item = &'a String>) -> anyhow::Result<Resources> {
    let mut all = Resources {
        resources: BTreeMap::new(),
    };
    for type_url in types {
        let mut of_type: Resources = relay.json(&format!("/resources?type={}", encoded(type_url)))?;
        all.resources.append(&mut of_type.resources);
    }
    Ok(all)
}

/// The values of a metric, as Prometheus reads them.
fn samples<'a>(metrics: &'a str, name: &'a str) -> impl Iterator<Item = &'a str> {
    let of = metrics.lines().filter_map(move |line| line.strip_prefix(name));
    of.filter(|rest| rest.starts_with(['{', ' ']))
}

fn sum(metrics: &str, name: &str) -> u64 {
    let values = samples(metrics, name).filter_map(|sample| sample.rsplit(' ').next()?.parse::<u64>().ok());
    values.sum()
}

fn label(metrics: &str, name: &str, label: &str) -> Option<String> {
    let (_, rest) = samples(metrics, name).next()?.split_once(&format!("{label}=\""))?;
    rest.split('"').next().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_are_read() {
        let metrics = "# HELP a_b x\na_b{version=\"1.2\",commit=\"\"} 1\na 3\na{b=\"c d\"} 4\na_total 9\n";
        assert_eq!((sum(metrics, "a"), sum(metrics, "b")), (7, 0));
        assert_eq!(label(metrics, "a_b", "version").as_deref(), Some("1.2"));
        assert_eq!(label(metrics, "a", "version"), None);
    }
}
