// SPDX-License-Identifier: Apache-2.0
//! The control planes, and which names each of them serves. Connects to nothing.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::Server;
use crate::xds::Owners;

/// The control planes. The numbers in the lists are positions in `servers`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Upstream {
    /// Every server once, however many lists name it (F-12).
    pub servers: Vec<Server>,
    /// The servers for names without an authority, in order of priority; at least one.
    pub top: Vec<usize>,
    /// The servers for each authority; a name of any other authority is treated like one without (F-11, F-13).
    pub authorities: BTreeMap<String, Authority>,
    /// Other servers for a share of the clients, in classes without servers of their own (G-23).
    pub canary: Option<Canary>,
    /// By the position of a class's rule: its own servers (G-22).
    pub classes: Vec<Option<ClassServers>>,
    /// The servers for some types (F-18).
    pub sources: Vec<TypeSource>,
    /// How a client of the relay builds a listener's name from a target, if configured.
    pub client_default_listener_resource_name_template: Option<String>,
    /// How a server behind the relay builds a listener's name from its address, if configured.
    pub server_listener_resource_name_template: Option<String>,
}

impl Upstream {
    /// Returns who is asked for what.
    pub fn owners(&self) -> Owners {
        let authorities = self.authorities.keys().map(|name| Arc::from(name.as_str()));
        let sources = self.sources.iter().flat_map(|source| {
            let key: Arc<str> = source.key().into();
            source.types.iter().map(move |name| (name.clone(), key.clone()))
        });
        Owners::new(authorities, sources.collect())
    }

    /// Returns the servers for names without an owner, for the clients of the rule at this position: of most of them, and of a share.
    pub fn lists(&self, rule: Option<usize>) -> (&[usize], Option<&Canary>) {
        let own = rule.and_then(|at| self.classes.get(at)?.as_ref());
        match own {
            Some(own) => (own.servers.as_slice(), own.canary.as_ref()),
            None => (self.top.as_slice(), self.canary.as_ref()),
        }
    }

    /// Whether there is anything that all classes of clients share.
    pub fn is_shared(&self) -> bool {
        !self.authorities.is_empty() || self.sources.iter().any(|source| source.shared)
    }

    /// Returns a server's name in logs and metrics: its URI, with a number if several servers have the same one.
    pub fn name(&self, at: usize) -> String {
        let uri = self.servers.get(at).map_or("", |server| server.uri.as_str());
        match self.servers.iter().take(at).filter(|before| before.uri == uri).count() {
            0 => uri.to_owned(),
            before => format!("{uri} ({})", before + 1),
        }
    }
}

/// The servers of one class, in place of those at the top.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassServers {
    /// In order of priority; at least one.
    pub servers: Vec<usize>,
    /// Other servers for a share of its clients.
    pub canary: Option<Canary>,
}

/// G-23: the servers of a share of the clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Canary {
    /// The share, in hundredths of a percent.
    pub share: u16,
    /// In order of priority, behind them those of all other clients.
    pub servers: Vec<usize>,
    /// How many are its own.
    pub first: usize,
}

impl Canary {
    /// Returns its own servers.
    pub fn own(&self) -> &[usize] {
        self.servers.get(..self.first).unwrap_or_default()
    }
}

impl fmt::Display for Canary {
    /// Writes its name for people.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, rest) = (self.share / 100, self.share % 100);
        match rest {
            0 => write!(f, "canary {whole}%"),
            rest => write!(f, "canary {whole}.{rest:02}%"),
        }
    }
}

/// A source: the servers for some types.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeSource {
    /// Its name.
    pub name: String,
    /// The full names of its types; no type has two sources.
    pub types: Vec<Box<str>>,
    /// In order of priority; at least one.
    pub servers: Vec<usize>,
    /// A95: whether the next server is asked as soon as one cannot be reached, even if nothing is missing.
    pub reachability_only: bool,
    /// F-20: whether all classes of clients share what is read there.
    pub shared: bool,
}

impl TypeSource {
    /// Returns what it has where authorities have their names. No authority begins like this.
    pub fn key(&self) -> String {
        format!("#{}", self.name)
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
