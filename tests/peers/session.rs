// SPDX-License-Identifier: Apache-2.0
//! One stream of a control plane, as a machine without I/O, clock or chance: what its client asks for, and what it is told.
//!
//! Owns the server's half of both dialects. What real servers do otherwise, late or never is a setting. Does not know where content
//! comes from, or what becomes of a response.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bytes::Bytes;
use proto::envoy::service::discovery::v3::{
    DeltaDiscoveryRequest, DeltaDiscoveryResponse, DiscoveryRequest, DiscoveryResponse,
};
use xds::Hasher;

use crate::messages::{CDS, EDS};
use crate::names::{Spellings, read_sotw};
use crate::subscription::Subscription;

/// What a control plane has, by type.
pub type State = BTreeMap<String, Resources>;
/// What it has of one, by name.
pub type Resources = BTreeMap<String, Resource>;

/// A resource as a control plane has it.
#[derive(Clone, Debug)]
pub struct Resource {
    pub body: Bytes,
    pub version: String,
    pub ttl: Option<Duration>,
    /// Whether a wildcard covers it.
    pub covered: bool,
}

/// What a control plane is like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Habits {
    /// What it calls itself.
    pub identifier: &'static str,
    /// What its versions end with.
    pub mark: String,
    /// It says nothing where a client has everything, as go-control-plane: to names in delta, to an equal version in SotW.
    pub silent: bool,
    /// Delta: it reports that a name does not exist (C-16).
    pub says_missing: bool,
    /// It believes what a client declares that it holds.
    pub believes: bool,
    /// It waits for an acknowledgement before it speaks of a type again.
    pub patient: bool,
    /// It sends all endpoints again after clusters.
    pub forces_endpoints: bool,
    /// It sends at once again what was rejected (E-22).
    pub insists: bool,
    /// SotW: it says nothing while a list of names lacks anything that it has (E-18).
    pub snapshot: bool,
    /// SotW: it says nothing while it lacks a name of the list, and looks for the node of each request, as java-control-plane (E-01, E-27).
    pub strict: bool,
    /// SotW: it sends only what has changed, where it may.
    pub partial: bool,
    /// Delta: how many resources it says in one message at most.
    pub split: Option<usize>,
    /// It does not answer for these types yet.
    pub late: BTreeSet<&'static str>,
    /// After so many responses it ends the stream.
    pub ends_after: Option<u64>,
}

/// What it says.
pub enum Reply {
    Delta(DeltaDiscoveryResponse),
    Sotw(DiscoveryResponse),
}

impl Reply {
    pub fn type_url(&self) -> &str {
        match self {
            Self::Delta(reply) => &reply.type_url,
            Self::Sotw(reply) => &reply.type_url,
        }
    }
}

/// One stream.
#[derive(Default)]
pub struct Session {
    pub types: BTreeMap<String, Subscription>,
    spellings: Spellings,
    delta: bool,
    sent: u64,
}

impl Default for Habits {
    fn default() -> Self {
        Self {
            identifier: "",
            mark: String::new(),
            silent: false,
            says_missing: true,
            believes: true,
            patient: false,
            forces_endpoints: false,
            insists: false,
            snapshot: false,
            strict: false,
            partial: false,
            split: None,
            late: BTreeSet::new(),
            ends_after: None,
        }
    }
}

impl Session {
    pub fn hear_delta(&mut self, habits: &Habits, mut request: DeltaDiscoveryRequest) {
        self.delta = true;
        self.spellings.read_delta(&mut request);
        let subscription = self.types.entry(request.type_url.clone()).or_default();
        subscription.hear_delta(habits, &request);
    }

    pub fn hear_sotw(&mut self, habits: &Habits, mut request: DiscoveryRequest) {
        read_sotw(&mut request);
        let subscription = self.types.entry(request.type_url.clone()).or_default();
        subscription.hear_sotw(habits, request);
    }

    /// Returns what it has to say now, in the order in which go-control-plane says it.
    pub fn replies(&mut self, habits: &Habits, state: &State) -> Vec<Reply> {
        let nothing = Resources::new();
        let (mut replies, mut clusters) = (Vec::new(), false);
        for (type_url, subscription) in &mut self.types {
            if habits.late.contains(type_url.as_str()) || habits.patient && subscription.is_unsettled() {
                continue;
            }
            if type_url == EDS && clusters && habits.forces_endpoints {
                subscription.repeat_all();
            }
            let before = replies.len();
            let all = state.get(type_url).unwrap_or(&nothing);
            match self.delta {
                true => replies.extend(subscription.say_news(habits, type_url, all, &mut self.sent)),
                false => replies.extend(subscription.say_all(habits, type_url, all, &mut self.sent)),
            }
            clusters |= type_url == CDS && replies.len() > before;
        }
        replies
    }

    /// It answers for a name again, as if it was asked.
    pub fn repeat(&mut self, type_url: &str, name: &str) {
        if let Some(subscription) = self.types.get_mut(type_url) {
            subscription.repeat(name);
        }
    }

    /// The last response of a type got a fault on its way. Its rejection may come too late, so everything will be sent again.
    pub fn doubt(&mut self, type_url: &str) {
        if let Some(subscription) = self.types.get_mut(type_url) {
            subscription.doubt();
        }
    }

    /// Whether the stream ends after its last response.
    #[must_use]
    pub fn is_over(&self, habits: &Habits) -> bool {
        habits.ends_after.is_some_and(|most| self.sent >= most)
    }

    /// How many responses it has sent.
    #[must_use]
    pub const fn sent(&self) -> u64 {
        self.sent
    }

    /// Whether it has sent this, as far as it remembers.
    #[must_use]
    pub fn has_sent(&self, type_url: &str, name: &str) -> bool {
        let subscription = self.types.get(type_url);
        subscription.is_some_and(|subscription| subscription.has_sent(name))
    }
}

impl From<&Bytes> for Resource {
    /// A resource that is all there is to its body.
    fn from(body: &Bytes) -> Self {
        let mut hasher = Hasher::new(0);
        hasher.field(body);
        Self {
            body: body.clone(),
            version: hasher.finish().to_string(),
            ttl: None,
            covered: true,
        }
    }
}
