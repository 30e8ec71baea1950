// SPDX-License-Identifier: Apache-2.0
//! Clients that answer by themselves: each rejects what is bad for its software.
//!
//! Owns what such a client got, accepted and rejected. A content is written as `NAME NUMBER`, and `!VERSION` for each software that
//! rejects it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use distributary::proto::envoy::config::core::v3::Node;
use distributary::proto::envoy::config::core::v3::node::UserAgentVersionType;
use distributary::xds::Dialect;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::support::messages::{Got, Subscriber};
use crate::support::{CDS, Relay, spawn};

/// A client in a task of its own. It leaves when it is dropped.
pub(super) struct Agent {
    pub(super) id: String,
    pub(super) version: &'static str,
    pub(super) held: Arc<Mutex<Held>>,
    /// Whether it answers no responses.
    waits: watch::Sender<bool>,
    task: JoinHandle<()>,
}

/// What the client has seen, by the names of contents.
#[derive(Debug, Default)]
pub(super) struct Held {
    pub(super) got: Vec<String>,
    pub(super) accepted: BTreeMap<String, String>,
    /// What it was sent that the control plane did not say any more when it came, without having rejected anything of that name.
    pub(super) uncalled: Vec<String>,
    /// The names of which it has rejected something.
    rejected: BTreeSet<String>,
    /// What the control plane had said before it came, and has replaced.
    before: BTreeSet<String>,
    /// The names of which it has rejected something and accepted nothing since: it may be thought to hold nothing of them (C-25).
    open: BTreeSet<String>,
    /// What it was sent although it held just that.
    pub(super) repeated: Vec<String>,
}

/// What a client is.
#[derive(Clone, Copy)]
pub(super) struct Software {
    pub(super) dialect: Dialect,
    pub(super) type_url: &'static str,
    pub(super) version: &'static str,
    /// Whether its words name what it rejects.
    pub(super) blames: bool,
}

impl Software {
    /// Whether each response lists everything.
    pub(super) fn is_whole(self) -> bool {
        self.dialect == Dialect::Sotw && self.type_url == CDS
    }
}

/// The name in a content.
pub(super) fn name(content: &str) -> &str {
    content.split(' ').next().unwrap_or_default()
}

/// Whether this software rejects a content.
pub(super) fn is_bad(content: &str, version: &str) -> bool {
    content.split(' ').any(|word| word.strip_prefix('!') == Some(version))
}

impl Agent {
    /// A client comes and asks for these names.
    pub(super) async fn come(
        relay: &Relay,
        software: Software,
        id: &str,
        names: &[&str],
        before: BTreeSet<String>,
    ) -> Self {
        let call = relay.connect().await.ads(software.dialect).await;
        let version = UserAgentVersionType::UserAgentVersion(software.version.to_owned());
        let node = Node {
            id: id.to_owned(),
            user_agent_name: "envoy".to_owned(),
            user_agent_version_type: Some(version),
            ..Node::default()
        };
        let mut client = Subscriber::of(call, software.dialect, software.type_url, node);
        client.subscribe(names);
        let held = Arc::new(Mutex::new(Held {
            before,
            ..Held::default()
        }));
        let (waits, told) = watch::channel(false);
        Self {
            id: id.to_owned(),
            version: software.version,
            held: held.clone(),
            waits,
            task: spawn(live(client, software, held, told)),
        }
    }

    /// It answers no more responses.
    pub(super) fn wait(&self) {
        self.waits.send_replace(true);
    }

    /// It answers what it owes, and all that follows.
    pub(super) fn answer(&self) {
        self.waits.send_replace(false);
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn live(mut client: Subscriber, software: Software, held: Arc<Mutex<Held>>, mut waits: watch::Receiver<bool>) {
    let mut owed: Option<Got> = None;
    loop {
        tokio::select! {
            changed = waits.changed() => {
                if changed.is_err() {
                    return;
                }
            }
            got = client.next(), if owed.is_none() => match got {
                Err(_) => return,
                Ok(got) => {
                    held.lock().receive(&got, software.dialect);
                    owed = Some(got);
                }
            },
        }
        if let Some(got) = owed.take_if(|_| !*waits.borrow()) {
            match held.lock().judge(&got, software) {
                None => client.ack(),
                Some(words) => client.nack(&words),
            }
        }
    }
}

impl Held {
    fn receive(&mut self, got: &Got, dialect: Dialect) {
        for content in &got.bodies {
            // Over SotW, a response may list what has not changed.
            let holds = self.accepted.get(name(content)) == Some(content) && !self.open.contains(name(content));
            if dialect == Dialect::Delta && holds {
                self.repeated.push(content.clone());
            }
            if self.before.contains(content) && !self.rejected.contains(name(content)) {
                self.uncalled.push(content.clone());
            }
            self.got.push(content.clone());
        }
    }

    /// Accepts or rejects a response as a whole. Returns the words of a rejection.
    fn judge(&mut self, got: &Got, software: Software) -> Option<String> {
        let contents = got
            .bodies
            .iter()
            .map(|content| (name(content).to_owned(), content.clone()));
        let bad = got.bodies.iter().filter(|content| is_bad(content, software.version));
        let bad: Vec<&str> = bad.map(|content| name(content)).collect();
        if bad.is_empty() {
            got.bodies
                .iter()
                .for_each(|content| _ = self.open.remove(name(content)));
            // A full state lists all.
            if software.is_whole() {
                self.accepted.clear();
            }
            self.accepted.extend(contents);
            return None;
        }
        self.open
            .extend(got.bodies.iter().map(|content| name(content).to_owned()));
        self.rejected
            .extend(got.bodies.iter().map(|content| name(content).to_owned()));
        Some(match software.blames {
            true => format!("{}: no", bad.join(": no, ")),
            false => "no".to_owned(),
        })
    }
}
