//! The control planes, and which names each of them serves. Connects to nothing.

use std::collections::BTreeMap;

use super::Server;

/// The control planes. The numbers in the lists are positions in `servers`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Upstream {
    /// Every server once, however many lists name it (F-12).
    pub servers: Vec<Server>,
    /// The servers for names without an authority, in order of priority; at least one.
    pub top: Vec<usize>,
    /// The servers for each authority; a name of any other authority is treated like one without (F-11, F-13).
    pub authorities: BTreeMap<String, Authority>,
    /// How a client of the relay builds a listener's name from a target, if configured.
    pub client_default_listener_resource_name_template: Option<String>,
    /// How a server behind the relay builds a listener's name from its address, if configured.
    pub server_listener_resource_name_template: Option<String>,
}

impl Upstream {
    /// Returns a server's name in logs and metrics: its URI, with a number if several servers have the same one.
    #[must_use]
    pub fn name(&self, at: usize) -> String {
        let uri = self.servers.get(at).map_or("", |server| server.uri.as_str());
        match self.servers.iter().take(at).filter(|before| before.uri == uri).count() {
            0 => uri.to_owned(),
            before => format!("{uri} ({})", before + 1),
        }
    }
}

/// The servers for one authority.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authority {
    /// In order of priority; at least one.
    pub servers: Vec<usize>,
    /// A95: whether the next server is asked as soon as one cannot be reached, even if nothing is missing.
    pub reachability_only: bool,
    /// How a client of the relay builds a listener's name from a target of this authority.
    pub client_listener_resource_name_template: String,
}
