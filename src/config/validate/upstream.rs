// SPDX-License-Identifier: Apache-2.0
//! Validates the list of control planes, and which names each of them serves.

use std::collections::BTreeMap;
use std::net::IpAddr;

use crate::config::reading::Spanned;
use crate::proto::envoy::config::core::v3::Node;

use super::{Check, server, sources};
use crate::config::bootstrap::{Authority as Entry, Bootstrap, XdsServer};
use crate::config::{Address, Authority, Endpoint, Reach, Server, Upstream};

pub(super) fn servers(
    check: &mut Check,
    prefix: &str,
    file: &Bootstrap,
    flags: &[String],
    listeners: &[Address],
) -> Upstream {
    let problems = check.problems();
    let mut servers = Servers::new(listeners, Vec::new(), None);
    let key = format!("{prefix}xds_servers");
    let top = if flags.is_empty() {
        list(check, &key, &file.xds_servers, &mut servers)
    } else {
        plain_list(check, flags, &mut servers)
    };
    if top.is_empty() && check.problems() == problems && !check.is_unread() {
        let advice = "no control plane; name one here or with --upstream, such as --upstream cp.example.com:18000";
        check.at(None, key, advice);
    }
    let mut authorities = BTreeMap::new();
    for (name, entry) in &file.authorities {
        let key = format!("{prefix}authorities.{name}");
        if sources::is_marked(name) {
            let place = entry.xds_servers.first().map(|server| server.place);
            let message =
                format!("`{name}` is not an authority: no name has it, and a `#` stands before the names of sources");
            check.at(place, &key, message);
        }
        let authority = authority(check, &key, name, entry, &top, &mut servers);
        authorities.insert(name.clone(), authority);
    }
    let template = file.client_default_template.as_ref();
    if let Some(written) = template
        && let Some(authority) = authority_of(&written.value)
        && !authorities.contains_key(authority)
    {
        let key = format!("{prefix}client_default_listener_resource_name_template");
        let message = format!(
            "`{authority}` is not in `authorities`, so clients would not know which server to ask for their listeners; add it there"
        );
        check.at(written.place, key, message);
    }
    Upstream {
        servers: servers.found,
        top,
        authorities,
        canary: None,
        classes: Vec::new(),
        sources: Vec::new(),
        client_default_listener_resource_name_template: template.map(|written| written.value.clone()),
        server_listener_resource_name_template: file.server_template.as_ref().map(|written| written.value.clone()),
    }
}

fn authority(
    check: &mut Check,
    key: &str,
    name: &str,
    entry: &Entry,
    top: &[usize],
    servers: &mut Servers<'_>,
) -> Authority {
    let own = list(check, &format!("{key}.xds_servers"), &entry.xds_servers, servers);
    let root = format!("xdstp://{name}/");
    let template = check.read(
        &format!("{key}.client_listener_resource_name_template"),
        entry.client_template.as_ref(),
        |text| {
            let right = text.starts_with(&root);
            let wrong = || format!("`{text}` is not under its authority; it must begin with {root}");
            right.then(|| text.to_owned()).ok_or_else(wrong)
        },
    );
    Authority {
        // F-11: an authority without servers of its own uses the servers at the top.
        servers: if own.is_empty() { top.to_vec() } else { own },
        reachability_only: entry.fallback_on_reachability_only,
        client_listener_resource_name_template: template
            .unwrap_or_else(|| format!("{root}envoy.config.listener.v3.Listener/%s")),
    }
}

/// Returns the positions of the servers of a list.
fn list(check: &mut Check, key: &str, entries: &[Spanned<XdsServer>], servers: &mut Servers<'_>) -> Vec<usize> {
    let mut list = Vec::new();
    for (index, entry) in entries.iter().enumerate() {
        let key = format!("{key}[{index}]");
        let Some(server) = server::server(check, &key, entry) else {
            continue;
        };
        let place = entry.value.server_uri.as_ref().map(|uri| uri.place);
        match servers.add(server, &mut list) {
            Ok(()) => {}
            Err(message) => check.at(place, format!("{key}.server_uri"), message),
        }
    }
    list
}

/// Reads a further list of servers, which may name known ones. Control planes see this `node` from them.
pub(super) fn more_servers(
    check: &mut Check,
    key: &str,
    entries: &Spanned<Vec<Spanned<XdsServer>>>,
    upstream: &mut Upstream,
    listeners: &[Address],
    node: Option<Node>,
) -> Vec<usize> {
    check.filled(key, entries, "name a control plane");
    let mut servers = Servers::new(listeners, std::mem::take(&mut upstream.servers), node);
    let list = list(check, key, &entries.value, &mut servers);
    upstream.servers = servers.found;
    list
}

fn plain_list(check: &mut Check, uris: &[String], servers: &mut Servers<'_>) -> Vec<usize> {
    let mut list = Vec::new();
    for uri in uris {
        check.flag("--upstream", uri, |uri| {
            servers.add(server::plain_server(uri)?, &mut list)
        });
    }
    list
}

/// The distinct servers so far.
struct Servers<'a> {
    listeners: &'a [Address],
    found: Vec<Server>,
    /// What those see of the relay that are added.
    node: Option<Box<Node>>,
}

impl<'a> Servers<'a> {
    /// Continues with these. Those that follow see this part of a node over the relay's own.
    fn new(listeners: &'a [Address], found: Vec<Server>, node: Option<Node>) -> Self {
        let node = node.filter(|node| *node != Node::default()).map(Box::new);
        Self { listeners, found, node }
    }

    /// Adds the position of `server` to `list`.
    fn add(&mut self, mut server: Server, list: &mut Vec<usize>) -> Result<(), String> {
        // Files see no node.
        if !matches!(server.reach, Reach::Files(_)) {
            server.node.clone_from(&self.node);
        }
        let uri = &server.uri;
        let endpoint = match &server.reach {
            Reach::Grpc(grpc) => Some(&grpc.endpoint),
            Reach::Rest(rest) => Some(&rest.endpoint),
            Reach::Files(_) => None,
        };
        let mine = |listener: &&Address| endpoint.is_some_and(|endpoint| leads_to(endpoint, listener));
        if let Some(listener) = self.listeners.iter().find(mine) {
            return Err(format!(
                "`{uri}` is this relay itself, by its listener {listener}; name a control plane"
            ));
        }
        // F-12: equal entries are one server, whichever lists they are in.
        let known = self.found.iter().position(|known| *known == server);
        let at = known.unwrap_or(self.found.len());
        if list.contains(&at) {
            return Err(format!("`{uri}` is in the list twice; remove one"));
        }
        list.push(at);
        if known.is_none() {
            self.found.push(server);
        }
        Ok(())
    }
}

/// Whether a connection to this endpoint would reach this listener, as far as that is known without resolving names.
fn leads_to(endpoint: &Endpoint, listener: &Address) -> bool {
    match (endpoint, listener) {
        (Endpoint::Unix(path), Address::Unix(bound)) => path == bound,
        (Endpoint::Tcp { host, port }, Address::Socket(bound)) if *port == bound.port() => {
            let here = |ip: IpAddr| ip.is_loopback() || ip.is_unspecified();
            match host.parse::<IpAddr>() {
                Ok(ip) => {
                    ip == bound.ip()
                        || here(ip) && here(bound.ip()) && (ip.is_unspecified() || bound.ip().is_unspecified())
                }
                Err(_) => host == "localhost" && here(bound.ip()),
            }
        }
        (Endpoint::Tcp { .. } | Endpoint::Unix(_), Address::Socket(_) | Address::Unix(_)) => false,
    }
}

/// `xdstp://authority/...`
fn authority_of(template: &str) -> Option<&str> {
    template.strip_prefix("xdstp://")?.split('/').next()
}
