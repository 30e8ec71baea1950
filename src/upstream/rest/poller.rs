// SPDX-License-Identifier: Apache-2.0
//! What a view asks a polled server for, and what its answers change.
//!
//! Owns the machine of one leg, and when each type is polled. To the machine, the polls are one stream: it begins with the first
//! poll and ends with the first failure, after which everything is asked for anew. Knows nothing of HTTP, JSON and clocks.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::topic::{ORDER, Topic};
use crate::proto::envoy::service::discovery::v3::{DiscoveryRequest, DiscoveryResponse};
use crate::protocol::{Client, ClientSettings, Received, Request};
use crate::xds::{Changes, Name, ServerState, ServerWords, Slot, Target, TypeUrl, Want};

/// Decides the polls of one server for one view, without I/O.
///
/// Inputs are `handle_*`; call [`poll_question`](Self::poll_question) and [`poll_timeout`](Self::poll_timeout) after each.
#[derive(Debug)]
pub struct Poller {
    client: Client,
    interval: Duration,
    reconnect_max: Duration,
    topics: BTreeMap<TypeUrl, Topic>,
    /// Whether the server answered after its last failure.
    answers: bool,
    failing: bool,
    /// G-11: whether clients read another server until this one answers. It is polled each second then.
    superseded: bool,
    nonce: u64,
    /// Counts of the resources in responses, until [`take_received`](Self::take_received) returns them.
    received: VecDeque<Received>,
}

/// One poll.
#[derive(Debug)]
pub struct PollQuestion {
    /// The type; there is at most one poll of each under way.
    pub type_url: TypeUrl,
    /// The path to poll.
    pub path: String,
    /// The body.
    pub request: DiscoveryRequest,
}

impl Poller {
    /// Creates one that asks for nothing yet. `interval` is the time from an answer to the next poll, `reconnect_max` the longest
    /// time from a failure to the next poll.
    #[must_use]
    pub fn new(mut client: Client, interval: Duration, reconnect_max: Duration) -> Self {
        client.handle_polled();
        Self {
            client,
            interval,
            reconnect_max,
            topics: BTreeMap::new(),
            answers: false,
            failing: false,
            superseded: false,
            nonce: 0,
            received: VecDeque::new(),
        }
    }

    /// There are new settings, for the polls and pauses from now on.
    pub fn handle_settings(&mut self, client: Arc<ClientSettings>, interval: Duration, reconnect_max: Duration) {
        self.client.handle_settings(client);
        self.interval = interval;
        self.reconnect_max = reconnect_max;
        self.topics.values_mut().for_each(|topic| topic.set_most(reconnect_max));
    }

    /// Whether a poll of this type is under way. A poll that does not ask for everything now wanted no longer counts.
    #[must_use]
    pub fn awaits(&self, type_url: &TypeUrl) -> bool {
        self.topics.get(type_url).is_some_and(Topic::is_asked)
    }

    /// Whether anything of this type is asked for.
    #[must_use]
    pub fn asks(&self, type_url: &TypeUrl) -> bool {
        self.topics.contains_key(type_url)
    }

    /// Whether anything is asked for.
    #[must_use]
    pub fn asks_anything(&self) -> bool {
        !self.topics.is_empty()
    }

    /// Returns what the server said about a resource, if it is held. Polls have no nonces.
    #[must_use]
    pub fn words(&self, type_url: &TypeUrl, name: &Name) -> Option<ServerWords> {
        let words = self.client.words(type_url, name)?;
        Some(ServerWords {
            nonce: Arc::default(),
            ..words
        })
    }

    /// Returns the error of one of the types, and when that type is polled again.
    #[must_use]
    pub fn trouble(&self) -> Option<(String, Instant)> {
        self.topics.values().find_map(Topic::trouble)
    }

    /// Returns the server's state. G-08: after a failure it counts as failing until it answers. `None`: nothing is wanted.
    #[must_use]
    pub fn server_state(&self) -> Option<ServerState> {
        let server_state = match (self.failing, self.answers) {
            (true, _) => ServerState::Failing,
            (false, true) => ServerState::Up,
            (false, false) => ServerState::Trying,
        };
        self.client.wanted().then_some(server_state)
    }

    /// A want begins or ends.
    pub fn handle_want(&mut self, want: &Want, now: Instant) -> Vec<Changes> {
        let changes = self.client.handle_want(want);
        if want.wanted {
            let topic = self.topics.entry(want.type_url.clone());
            topic.or_insert_with(|| Topic::new(self.reconnect_max, now)).want(now);
        } else if !self.client.wants(&want.type_url) {
            self.topics.remove(&want.type_url);
        }
        self.hurry();
        changes
    }

    /// A want has begun for something that the relay knew before its restart, as in `slot`.
    pub fn handle_restored(&mut self, type_url: &TypeUrl, target: &Target, slot: &Slot) -> Option<Changes> {
        self.client.handle_restored(type_url, target, slot)
    }

    /// G-12: another server has stood in. Requests to this one no longer state the versions that it sent before.
    pub fn handle_superseded(&mut self) {
        self.superseded = true;
        self.topics.values_mut().for_each(Topic::supersede);
    }

    /// K-25: the requests come through these relays as well; the next poll says so.
    pub fn handle_relays(&mut self, relays: Vec<String>) {
        self.client.handle_relays(relays);
    }

    /// Time has passed.
    pub fn handle_timeout(&mut self, now: Instant) -> Vec<Changes> {
        let mut changes = self.client.handle_timeout(now);
        changes.extend(self.take_news(now));
        let due = self.topics.values().any(|topic| topic.due() <= now);
        if due && self.client.wanted() && !self.client.connected() {
            // After a failure everything is asked for anew.
            self.client.handle_superseded();
            self.client.handle_connected(Duration::ZERO);
        }
        changes
    }

    /// Takes acknowledgements and rejections from the machine, which the next polls will carry. Returns the next rejection: its
    /// type, and what was wrong.
    pub fn poll_refusal(&mut self, now: Instant) -> Option<(String, String)> {
        while let Some(request) = self.client.poll_request(now) {
            let Request::Sotw(request) = request else { continue };
            let Some(topic) = self.topics.get_mut(&TypeUrl::new(&request.type_url)) else {
                continue;
            };
            let type_url = request.type_url.clone();
            if let Some(fault) = topic.keep_request(request) {
                return Some((type_url, fault));
            }
        }
        None
    }

    /// Returns the next poll that is due. Call [`poll_refusal`](Self::poll_refusal) until it returns `None` first.
    pub fn poll_question(&mut self, now: Instant) -> Option<PollQuestion> {
        if !self.client.connected() {
            return None;
        }
        for (type_url, topic) in &mut self.topics {
            // H-03: a type without a path cannot be polled.
            let Some(path) = type_url.path() else { continue };
            let Some(request) = topic.ask(now) else { continue };
            let request = DiscoveryRequest {
                node: Some(self.client.node()),
                type_url: type_url.url().to_owned(),
                ..request
            };
            let type_url = type_url.clone();
            return Some(PollQuestion {
                type_url,
                path,
                request,
            });
        }
        None
    }

    /// The server has answered; without a response, its last answer is still valid. `dice` is evenly spread over 0 to 1.
    pub fn handle_answer(
        &mut self,
        type_url: &TypeUrl,
        response: Option<DiscoveryResponse>,
        dice: f64,
        now: Instant,
    ) -> Vec<Changes> {
        let Some(topic) = self.topics.get_mut(type_url) else {
            return Vec::new();
        };
        topic.answered(self.interval, dice, now);
        (self.answers, self.failing, self.superseded) = (true, false, false);
        if !self.client.connected() {
            // Another poll failed in the meantime, which ended the machine's stream: this answer is ignored and the type polled
            // again.
            topic.poll_now(now);
            return Vec::new();
        }
        if let Some(response) = response {
            topic.keep(response, now);
        }
        self.take_news(now)
    }

    /// Returns the counts of the next response that was taken.
    pub fn take_received(&mut self) -> Option<Received> {
        self.received.pop_front()
    }

    /// Returns the wanted types that cannot be polled, and why.
    #[must_use]
    pub fn unserved(&self) -> BTreeMap<TypeUrl, Arc<str>> {
        self.client.unserved()
    }

    /// Passes responses to the machine. D-01, D-03, D-04: the types are answered separately, so a route could come before its
    /// cluster, or a cluster go before its route. So after a response of one such type the others are polled once more, and all
    /// are passed on together; a server that holds polls back is waited for only for a moment.
    fn take_news(&mut self, now: Instant) -> Vec<Changes> {
        let ready = self.together(now);
        let mut ripe: Vec<TypeUrl> = Vec::new();
        for (type_url, topic) in &self.topics {
            if topic.came().is_some() && (ready || !belongs(type_url)) {
                ripe.push(type_url.clone());
            }
        }
        ripe.sort_by_key(|type_url| type_url.traits().kind);
        let mut changes = Vec::new();
        for type_url in ripe {
            let Some((response, came)) = self.topics.get_mut(&type_url).and_then(Topic::take_news) else {
                continue;
            };
            self.nonce += 1;
            let response = DiscoveryResponse {
                type_url: type_url.url().to_owned(),
                nonce: self.nonce.to_string(),
                ..response
            };
            changes.extend(self.client.handle_response(response, came));
            self.received.extend(self.client.take_received());
        }
        changes
    }

    /// Whether the responses of types that belong together are complete: no such type may have an older answer. Polls those that
    /// do.
    fn together(&mut self, now: Instant) -> bool {
        let ours = self.topics.iter_mut().filter(|(type_url, _)| belongs(type_url));
        let mut ours: Vec<&mut Topic> = ours.map(|(_, topic)| topic).collect();
        let came = ours.iter().filter_map(|topic| topic.came());
        let Some(first) = came.min().filter(|first| now < *first + ORDER) else {
            return true;
        };
        let mut ready = true;
        for topic in ours.iter_mut().filter(|topic| topic.is_behind(first)) {
            ready = false;
            topic.poll_now(now);
        }
        ready
    }

    /// A poll failed, for this reason: `alone` if the failure concerns this type only, not the server. Returns how long to wait,
    /// and the changes. `dice` is evenly spread over 0 to 1.
    pub fn handle_failure(
        &mut self,
        type_url: &TypeUrl,
        why: String,
        alone: bool,
        dice: f64,
        now: Instant,
    ) -> (Duration, Vec<Changes>) {
        let Some(topic) = self.topics.get_mut(type_url) else {
            return (Duration::ZERO, Vec::new());
        };
        topic.failed(why, alone, dice, now);
        if alone {
            return (topic.due() - now, Vec::new());
        }
        // H-07: known resources stay. Timeouts for missing resources stop while the server does not answer.
        (self.answers, self.failing) = (false, true);
        self.topics.values_mut().for_each(Topic::forget);
        let lost = match self.client.connected() {
            true => self.client.handle_disconnected(),
            false => Vec::new(),
        };
        self.hurry();
        if self.superseded {
            self.topics.values_mut().for_each(Topic::shorten);
        }
        let due = self.topics.get(type_url).map_or(now, Topic::due);
        (due - now, lost)
    }

    fn hurry(&mut self) {
        if self.client.lacks() {
            self.topics.values_mut().for_each(Topic::hurry);
        }
    }

    /// Returns when [`handle_timeout`](Self::handle_timeout) is due.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let polled = self.topics.iter().filter(|(type_url, _)| type_url.path().is_some());
        let due = polled.filter_map(|(_, topic)| topic.wakes());
        due.chain(self.client.poll_timeout()).min()
    }
}

/// Whether the type is a cluster or refers to clusters, and can be polled: such types are passed on together.
fn belongs(type_url: &TypeUrl) -> bool {
    let kind = type_url.traits().kind;
    (kind.refers() || kind.gated()) && type_url.path().is_some()
}
