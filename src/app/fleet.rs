// SPDX-License-Identifier: Apache-2.0
//! The control planes in use, by number.
//!
//! Owns the numbers: a server that stays in the configuration keeps its number, and no number is used twice. Decides nothing about who
//! reads which server.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::sync::futures::Notified;
use tokio::task::AbortHandle;

use super::plan;
use crate::cache::{Canary, Lists, Route, Routes};
use crate::config::{self, Config, Reach};
use crate::json::Schemas;
use crate::proto::envoy::config::core::v3::Node;
use crate::telemetry::Metrics;
use crate::upstream::{Files, RestServer, ServerTarget, StreamStatus, UpstreamSettings};

/// All control planes that are configured, and those that were until a moment ago.
pub(super) struct Fleet {
    metrics: Arc<Metrics>,
    schemas: Schemas,
    /// K-25: the mark by which the relay recognizes itself.
    mark: String,
    members: Mutex<FleetMembers>,
    changed: Notify,
}

#[derive(Default)]
struct FleetMembers {
    all: BTreeMap<usize, Arc<Member>>,
    /// The number of the next new server.
    next: usize,
    /// The lists of servers by their names, that at the top without one.
    rows: BTreeMap<String, ServerList>,
    /// The lists among them without which clients cannot be served.
    needed: Vec<(String, Vec<usize>)>,
    /// Since when these are in no route.
    left: BTreeMap<usize, Instant>,
}

/// A list of servers, as operators see it.
#[derive(Clone)]
pub(super) struct ServerList {
    /// The owner of what is asked for there: an authority, a source, or none.
    pub(super) owner: Option<String>,
    /// Whose it is.
    pub(super) readers: ListReaders,
    /// By priority.
    pub(super) servers: Vec<usize>,
    /// Servers that the same clients have in another list.
    pub(super) others: Vec<usize>,
    /// Whether it is for a share of them.
    pub(super) is_canary: bool,
}

/// Which classes of clients a list of servers is for.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum ListReaders {
    /// All.
    All,
    /// That of the rule at this position.
    Rule(usize),
    /// Those without a list of their own: all but the rules at these positions.
    AllBut(Vec<usize>),
}

/// One control plane.
pub(super) struct Member {
    /// Its name in logs, metrics and snapshots.
    pub(super) name: String,
    pub(super) fed: Fed,
    server: config::Server,
    /// The task that reads its files, if it is files.
    reading: Option<AbortHandle>,
}

/// The source of a view's resources.
#[derive(Clone)]
pub(super) enum Fed {
    Grpc(Arc<ServerTarget>, Arc<UpstreamSettings>),
    Rest(Arc<RestServer>, Arc<UpstreamSettings>),
    Files(Arc<Files>),
}

/// A server that is gone from the configuration, and that no view needs, is forgotten after this time. Sessions that were about to
/// enter its view have done so.
const FORGOTTEN: Duration = Duration::from_secs(60);

impl Fleet {
    pub(super) fn new(metrics: &Arc<Metrics>, schemas: Schemas, mark: &str) -> Arc<Self> {
        Arc::new(Self {
            metrics: metrics.clone(),
            schemas,
            mark: mark.to_owned(),
            members: Mutex::default(),
            changed: Notify::new(),
        })
    }

    /// Takes up the servers of this configuration. Returns the routes to them.
    pub(super) fn take(&self, config: &Config, now: Instant) -> Routes {
        let upstream = &config.upstream;
        let mut members = self.members.lock();
        let servers = upstream.servers.iter().enumerate();
        let numbers: Vec<usize> = servers
            .map(|(at, server)| {
                let mut known = members.all.iter();
                if let Some((number, _)) = known.find(|(_, member)| member.server == *server) {
                    return *number;
                }
                let number = members.next;
                members.next += 1;
                let member = self.member(upstream.name(at), server, config);
                members.all.insert(number, Arc::new(member));
                number
            })
            .collect();
        let numbered = |list: &[usize]| {
            list.iter()
                .filter_map(|at| numbers.get(*at).copied())
                .collect::<Vec<_>>()
        };
        let route = |servers: &[usize], reachability_only, shared| Route {
            servers: numbered(servers).into(),
            reachability_only,
            shared,
        };
        let lists = |servers: &[usize], canary: Option<&config::Canary>| Lists {
            usual: route(servers, false, false),
            canary: canary.map(|canary| Canary {
                share: canary.share,
                route: route(&canary.servers, false, false),
            }),
        };
        let rules = config.classes.rules().iter().zip(&upstream.classes);
        let classes = rules.map(|(rule, own)| {
            let own = own.as_ref().map(|own| lists(&own.servers, own.canary.as_ref()));
            (rule.clone(), own)
        });
        let authorities = upstream.authorities.iter();
        let authorities =
            authorities.map(|(name, of)| (name.as_str().into(), route(&of.servers, of.reachability_only, true)));
        let sources = upstream.sources.iter();
        let sources = sources.map(|of| (of.key().into(), route(&of.servers, of.reachability_only, of.shared)));
        let routes = Routes::of(
            lists(&upstream.top, upstream.canary.as_ref()),
            classes.collect(),
            authorities.chain(sources).collect(),
            upstream.owners(),
        );
        members.rows = rows(upstream, numbered);
        let sources = upstream.sources.iter().map(|source| (source.key(), &source.servers));
        members.needed = std::iter::once((String::new(), &upstream.top))
            .chain(sources)
            .map(|(name, list)| (name, numbered(list)))
            .collect();
        members.leave(&numbers, now);
        drop(members);
        self.changed.notify_waiters();
        routes
    }

    /// Gives the streams that begin from now on, and all polls, their settings from this configuration.
    pub(super) fn set(&self, config: &Config) {
        let members: Vec<Arc<Member>> = self.members.lock().all.values().cloned().collect();
        for member in members {
            let settings = plan::upstream(config, &self.mark, member.server.features);
            match &member.fed {
                Fed::Grpc(target, _) => target.record.set(settings),
                Fed::Rest(server, _) => server.record.set(settings),
                Fed::Files(_) => {}
            }
        }
    }

    fn member(&self, name: String, server: &config::Server, config: &Config) -> Member {
        let metrics = &self.metrics;
        let settings = || Arc::new(plan::upstream(config, &self.mark, server.features));
        let mut reading = None;
        let fed = match &server.reach {
            Reach::Grpc(grpc) => {
                let target = ServerTarget::new(&name, grpc.clone(), metrics.upstreams.of(&name));
                Fed::Grpc(target, settings())
            }
            Reach::Rest(rest) => {
                let schemas = self.schemas.clone();
                let target = RestServer::new(&name, rest.clone(), schemas, metrics.upstreams.of(&name));
                Fed::Rest(target, settings())
            }
            Reach::Files(path) => {
                let files = Files::new(&name, path, metrics.upstreams.of_files(&name));
                let dictionary = plan::dictionary(config, self.schemas.clone());
                let reads = files.clone().run(plan::file_bytes(config), dictionary);
                reading = Some(super::spawn(&metrics.turns.other, reads).abort_handle());
                Fed::Files(files)
            }
        };
        Member {
            name,
            fed,
            server: server.clone(),
            reading,
        }
    }

    /// Returns a control plane by its number.
    pub(super) fn get(&self, number: usize) -> Option<Arc<Member>> {
        self.members.lock().all.get(&number).cloned()
    }

    /// Returns all lists of servers by their names.
    pub(super) fn rows(&self) -> BTreeMap<String, ServerList> {
        self.members.lock().rows.clone()
    }

    /// Returns the lists of servers without which clients cannot be served, by their names: for names without an owner, and of each
    /// source.
    pub(super) fn needed(&self) -> Vec<(String, Vec<Arc<Member>>)> {
        let members = self.members.lock();
        let member = |number: &usize| members.all.get(number).cloned();
        let needed = members.needed.iter();
        needed
            .map(|(name, list)| (name.clone(), list.iter().filter_map(member).collect()))
            .collect()
    }

    /// Waits for the next change of the servers after this call.
    pub(super) fn changed(&self) -> Notified<'_> {
        self.changed.notified()
    }

    /// Forgets servers that are in no route and have none of these views. To be called from time to time.
    pub(super) fn purge(&self, viewed: &BTreeSet<usize>, now: Instant) {
        let mut members = self.members.lock();
        let gone = members.left.iter();
        let gone = gone.filter(|(number, since)| !viewed.contains(number) && now >= **since + FORGOTTEN);
        let gone: Vec<usize> = gone.map(|(number, _)| *number).collect();
        for number in gone {
            members.left.remove(&number);
            let Some(member) = members.all.remove(&number) else {
                continue;
            };
            // An entry that has changed is a new server with the same name.
            if members.all.values().all(|other| other.name != member.name) {
                self.metrics.upstreams.forget(&member.name);
            }
        }
    }
}

impl ListReaders {
    /// Whether the class of the rule at this position is among them. The position is only looked for where it matters.
    pub(super) fn have(&self, rule: impl FnOnce() -> Option<usize>) -> bool {
        match self {
            Self::All => true,
            Self::Rule(at) => rule() == Some(*at),
            Self::AllBut(others) => rule().is_none_or(|at| !others.contains(&at)),
        }
    }
}

/// Returns all lists of servers by their names.
fn rows(upstream: &config::Upstream, numbered: impl Fn(&[usize]) -> Vec<usize>) -> BTreeMap<String, ServerList> {
    let mut rows = BTreeMap::new();
    let owned = |owner: String, servers: &[usize]| {
        let row = ServerList {
            owner: Some(owner.clone()),
            readers: ListReaders::All,
            servers: numbered(servers),
            others: Vec::new(),
            is_canary: false,
        };
        (owner, row)
    };
    rows.extend(
        upstream
            .authorities
            .iter()
            .map(|(name, of)| owned(name.clone(), &of.servers)),
    );
    rows.extend(upstream.sources.iter().map(|of| owned(of.key(), &of.servers)));
    let mut listed = |name: &str, readers: ListReaders, (servers, canary): (&[usize], Option<&config::Canary>)| {
        let row = |servers: &[usize], others: &[usize], is_canary| ServerList {
            owner: None,
            readers: readers.clone(),
            servers: numbered(servers),
            others: numbered(others),
            is_canary,
        };
        let own = canary.map_or(&[][..], config::Canary::own);
        rows.insert(name.to_owned(), row(servers, own, false));
        if let Some(canary) = canary {
            let name = [name, &canary.to_string()].join(" ");
            rows.insert(name.trim().to_owned(), row(own, servers, true));
        }
    };
    let classes = upstream.classes.iter().enumerate();
    let with_own: Vec<usize> = classes.filter(|(_, own)| own.is_some()).map(|(at, _)| at).collect();
    for at in &with_own {
        listed(
            &format!("classes[{at}]"),
            ListReaders::Rule(*at),
            upstream.lists(Some(*at)),
        );
    }
    let all = if with_own.is_empty() {
        ListReaders::All
    } else {
        ListReaders::AllBut(with_own)
    };
    listed("", all, upstream.lists(None));
    rows
}

impl FleetMembers {
    /// Notes which servers are in use, and since when the others are not.
    fn leave(&mut self, used: &[usize], now: Instant) {
        self.left.retain(|number, _| !used.contains(number));
        for number in self.all.keys() {
            if !used.contains(number) {
                self.left.entry(*number).or_insert(now);
            }
        }
    }
}

impl Member {
    /// Returns the node that the server sees of the relay.
    pub(super) fn node(&self, relay: &Node) -> Node {
        self.server.node(relay)
    }

    /// Returns the name of its snapshots; none for files, which are on disk anyway.
    pub(super) fn in_snapshots(&self) -> Option<&str> {
        match self.fed {
            Fed::Grpc(..) | Fed::Rest(..) => Some(&self.name),
            Fed::Files(_) => None,
        }
    }

    /// Returns its status apart from the streams of views: that of files, or of the attempts until it is reached for the first time.
    pub(super) fn status(&self) -> Option<StreamStatus> {
        match &self.fed {
            Fed::Grpc(target, _) => target.record.contact(),
            Fed::Rest(server, _) => server.record.contact(),
            Fed::Files(files) => Some(files.status().as_stream()),
        }
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        if let Some(reading) = &self.reading {
            reading.abort();
        }
    }
}
