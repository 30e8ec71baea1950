//! Which control planes there are, and which of them answers for what. It orders and connects nothing.

use std::collections::BTreeMap;

use super::Server;

/// The control planes. The numbers in the lists are positions in `servers`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Upstream {
    /// Every server once, however many lists name it (F-12).
    pub servers: Vec<Server>,
    /// Who answers for names without an authority, in order of priority; at least one.
    pub top: Vec<usize>,
    /// Who answers for which authority; a name of any other is asked like one without (F-11, F-13).
    pub authorities: BTreeMap<String, Authority>,
    /// How a client of the relay makes a listener's name of a target, if the operator says so.
    pub client_default_listener_resource_name_template: Option<String>,
    /// How a server behind the relay makes a listener's name of its address, if the operator says so.
    pub server_listener_resource_name_template: Option<String>,
}

impl Upstream {
    /// What logs and metrics call a server: its URI, with a number where several servers have the same one.
    #[must_use]
    pub fn name(&self, at: usize) -> String {
        let uri = self.servers.get(at).map_or("", |server| server.uri.as_str());
        match self.servers.iter().take(at).filter(|before| before.uri == uri).count() {
            0 => uri.to_owned(),
            before => format!("{uri} ({})", before + 1),
        }
    }
}

/// Who answers for one authority.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authority {
    /// In order of priority; at least one.
    pub servers: Vec<usize>,
    /// A95: a server that cannot be reached is reason enough to ask the next one.
    pub reachability_only: bool,
    /// How a client of the relay makes a listener's name of a target of this authority.
    pub client_listener_resource_name_template: String,
}
