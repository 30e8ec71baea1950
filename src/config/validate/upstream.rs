//! The part of the check that is about which control planes there are.

use std::collections::BTreeMap;

use super::Check;
use crate::config::shape;
use crate::config::{Authority, Server, Source, Upstream};

impl Check {
    pub(super) fn upstream(&mut self, file: shape::Upstream, flags: &[String]) -> Upstream {
        let mut servers = Vec::new();
        let top = if flags.is_empty() {
            self.list("upstream.xds_servers", &file.xds_servers, &mut servers)
        } else {
            let plain: Vec<Server> = flags
                .iter()
                .filter_map(|uri| self.flag("--upstream", uri, Self::plain_server))
                .collect();
            plain.into_iter().map(|server| position(&mut servers, server)).collect()
        };
        if top.is_empty() && self.problems.is_empty() {
            let advice = "no control plane; name one here or with --upstream, such as --upstream cp.example.com:18000";
            self.at(None, "upstream.xds_servers", advice.to_owned());
        }
        let mut authorities = BTreeMap::new();
        for (name, entry) in file.authorities {
            let authority = self.authority(&name, &entry, &top, &mut servers);
            authorities.insert(name, authority);
        }
        for server in &servers {
            self.built(server);
        }
        Upstream {
            servers,
            top,
            authorities,
            client_default_listener_resource_name_template: None,
            server_listener_resource_name_template: None,
        }
    }

    /// The one place that refuses what is understood and not built yet.
    fn built(&mut self, server: &Server) {
        let missing = match server.source {
            Source::Grpc(_) => return,
            Source::Files(_) => "files cannot be a source yet",
            Source::Rest(_) => "REST cannot be a source yet",
        };
        let message = format!("`{}`: {missing}; name a gRPC server, such as host:port", server.uri);
        self.at(None, "upstream", message);
    }

    fn authority(
        &mut self,
        name: &str,
        entry: &shape::Authority,
        top: &[usize],
        servers: &mut Vec<Server>,
    ) -> Authority {
        let key = format!("upstream.authorities.{name}");
        let own = self.list(&format!("{key}.xds_servers"), &entry.xds_servers, servers);
        let root = format!("xdstp://{name}/");
        let template = self.read(
            &format!("{key}.client_listener_resource_name_template"),
            entry.client_listener_resource_name_template.as_ref(),
            |text| match text.starts_with(&root) {
                true => Ok(text.to_owned()),
                false => Err(format!(
                    "`{text}` is not under its authority; it must begin with {root}"
                )),
            },
        );
        Authority {
            // F-11: an authority without servers of its own is asked for at the servers of all.
            servers: if own.is_empty() { top.to_vec() } else { own },
            reachability_only: entry.fallback_on_reachability_only.unwrap_or_default(),
            client_listener_resource_name_template: template
                .unwrap_or_else(|| format!("{root}envoy.config.listener.v3.Listener/%s")),
        }
    }

    fn list(&mut self, key: &str, entries: &[shape::XdsServer], servers: &mut Vec<Server>) -> Vec<usize> {
        let mut found = Vec::new();
        for (index, entry) in entries.iter().enumerate() {
            let key = format!("{key}[{index}]");
            let Some(server) = self.server(&key, entry) else {
                continue;
            };
            let at = position(servers, server);
            if found.contains(&at) {
                let message = format!("`{}` is in the list twice; remove one", entry.server_uri.value);
                self.at(Some(entry.server_uri.referenced), format!("{key}.server_uri"), message);
            }
            found.push(at);
        }
        found
    }
}

/// F-12: equal entries are one server, whichever lists they are in.
fn position(servers: &mut Vec<Server>, server: Server) -> usize {
    servers.iter().position(|known| *known == server).unwrap_or_else(|| {
        servers.push(server);
        servers.len() - 1
    })
}
