// SPDX-License-Identifier: Apache-2.0
//! A relay's writer without its sockets: the machine of one stream, the table of what waits behind it, and the view that they fill.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use prost::Message;
use protocol::{Holds, Request};
use xds::{
    Changes, Cut, Dialect, GuardSettings, Hold, HoldAction, HoldChange, HoldOrder, HoldTarget, HoldTimes, Known, Name,
    OtherViews, ServerState, Slot, Target, TypeUrl, Within,
};

use super::above::Above;
use super::plane::{Plane, Reply};
use crate::{Upstream, cut, ms, secs};

/// The relay and its control plane.
pub(crate) struct Stage {
    pub(crate) upstream: Upstream,
    pub(crate) guard: Holds,
    pub(crate) plane: Plane,
    /// Another relay between this one and its control plane, which is that one's then.
    pub(crate) above: Option<Box<Above>>,
    pub(crate) dialect: Dialect,
    /// The routes that a client wants now.
    pub(crate) wanted: BTreeSet<String>,
    pub(crate) holds: Vec<Hold>,
    /// What began and ended: `+cds mass 5`, `-cds mass clock`.
    pub(crate) events: Vec<String>,
    /// How long the relay has taken to read what was said, to decide, and to apply it.
    pub(crate) spent: Duration,
    /// How many cuts were published.
    pub(crate) cuts: usize,
    /// What the sessions are served by the view of another server.
    pub(crate) elsewhere: Option<Arc<Cut>>,
    /// Others have stayed here.
    pub(crate) some_stayed: bool,
    /// What clients read of other sources.
    pub(crate) other_views: Option<OtherViews>,
    /// The control plane, as others see it.
    pub(crate) state: ServerState,
    is_streaming: bool,
    /// When it has answered first on its present stream, by type.
    pub(crate) answered: BTreeMap<String, Instant>,
}

/// The default settings.
pub(crate) const USUAL: GuardSettings = GuardSettings {
    references: true,
    within: Within::FirstState,
    hold: HoldTimes::all(secs(60)),
    unready: secs(60),
};

impl Stage {
    /// One whose stream is open, on which these are wanted.
    pub(crate) fn new(dialect: Dialect, settings: GuardSettings, wants: &[(&str, &str)]) -> Self {
        let mut stage = Self {
            upstream: Upstream::new(dialect),
            guard: Holds::new(ms(100), ms(2000), settings),
            plane: Plane::default(),
            above: None,
            dialect,
            wanted: BTreeSet::new(),
            holds: Vec::new(),
            events: Vec::new(),
            spent: Duration::ZERO,
            cuts: 0,
            elsewhere: None,
            some_stayed: false,
            other_views: None,
            state: ServerState::Up,
            is_streaming: true,
            answered: BTreeMap::new(),
        };
        wants.iter().for_each(|(kind, name)| stage.upstream.want(kind, name));
        stage.upstream.connect();
        stage
    }

    /// The control plane has this resource from now on; it says so with the next `exchange`.
    pub(crate) fn put(&mut self, kind: &str, name: &str, body: Bytes) {
        let of_kind = self.top().plane.content.entry(kind.to_owned()).or_default();
        of_kind.insert(name.to_owned(), body);
    }

    /// The control plane has this from now on, and says so.
    pub(crate) fn say(&mut self, kind: &str, name: &str, body: Bytes) {
        self.put(kind, name, body);
        self.exchange();
    }

    pub(crate) fn remove(&mut self, kind: &str, name: &str) {
        let of_kind = self.top().plane.content.entry(kind.to_owned()).or_default();
        assert!(of_kind.remove(name).is_some(), "{kind} {name}");
    }

    /// The control plane restarts.
    pub(crate) fn restart(&mut self) {
        self.end_stream();
        self.begin_stream();
    }

    /// Another relay is between this one and its control plane from now on.
    pub(crate) fn put_between(&mut self) {
        self.end_stream();
        let mut stage = Self::new(self.dialect, USUAL, &[]);
        stage.upstream.now = self.upstream.now;
        stage.plane = std::mem::take(&mut self.plane);
        self.above = Some(Box::new(Above::new(stage)));
        self.begin_stream();
    }

    /// The relay that asks the control plane itself.
    pub(crate) fn top(&mut self) -> &mut Self {
        if self.above.is_none() {
            return self;
        }
        &mut self.above.as_mut().unwrap().stage
    }

    /// What is above is away from now on.
    pub(crate) fn lose(&mut self) {
        self.end_stream();
        self.count(false);
    }

    /// It is there again.
    pub(crate) fn find(&mut self) {
        if !self.is_streaming {
            self.begin_stream();
        }
        self.count(true);
    }

    /// It counts as being there, or as away although this stream goes on: the view's other one has failed.
    pub(crate) fn count(&mut self, there: bool) {
        self.state = if there { ServerState::Up } else { ServerState::Failing };
        self.guard.handle_server(there, self.upstream.now);
        self.publish(Vec::new());
    }

    fn end_stream(&mut self) {
        match &mut self.above {
            Some(above) => above.hang_up(),
            None => self.plane.hang_up(),
        }
        self.is_streaming = false;
        self.answered.clear();
        let changes = self.upstream.client.handle_disconnected();
        self.publish(changes);
    }

    fn begin_stream(&mut self) {
        if self.elsewhere.is_some() {
            self.upstream.client.handle_superseded();
        }
        self.is_streaming = true;
        self.upstream.connect();
    }

    /// Requests and responses, until both have nothing more to say. All responses are read in one turn, as a busy relay would.
    pub(crate) fn exchange(&mut self) {
        loop {
            while let Some(request) = self.upstream.client.poll_request(self.upstream.now) {
                let node = self.upstream.client.take_node();
                match (&mut self.above, request) {
                    (Some(above), request) => above.hear(request, node),
                    (None, Request::Delta(request)) => self.plane.hear_delta(request),
                    (None, Request::Sotw(request)) => self.plane.hear_sotw(request),
                }
            }
            let replies = match &mut self.above {
                Some(above) => above.replies(),
                None => Some(self.plane.replies()),
            };
            let Some(replies) = replies else {
                self.restart();
                continue;
            };
            if replies.is_empty() {
                return;
            }
            let (now, began) = (self.upstream.now, clock());
            let client = &mut self.upstream.client;
            let answered = &mut self.answered;
            let changes = replies.into_iter().inspect(|reply| {
                answered.entry(reply.type_url().to_owned()).or_insert(now);
            });
            let changes = changes.flat_map(|reply| match reply {
                Reply::Delta(reply) => {
                    client.handle_response(cut(reply.encode_to_vec()).finish(Dialect::Delta).unwrap(), now)
                }
                Reply::Sotw(reply) => client.handle_response(reply, now),
            });
            let changes = changes.collect();
            self.publish(changes);
            self.spent += clock() - began;
        }
    }

    /// Lets time pass, with everything that happens in it.
    pub(crate) fn pass(&mut self, time: Duration) {
        let end = self.upstream.now + time;
        loop {
            self.exchange();
            let Some(at) = self.due().filter(|at| *at <= end) else {
                break;
            };
            self.reach(at);
            let changes = self.upstream.client.handle_timeout(self.upstream.now);
            self.publish(changes);
        }
        self.reach(end);
    }

    fn reach(&mut self, at: Instant) {
        self.upstream.now = self.upstream.now.max(at);
        if let Some(above) = &mut self.above {
            above.stage.pass(self.upstream.now - above.stage.upstream.now);
        }
    }

    /// When something happens next by itself.
    pub(crate) fn due(&self) -> Option<Instant> {
        let above = self.above.as_ref().and_then(|above| above.due());
        let due = [self.upstream.client.poll_timeout(), self.guard.poll_timeout(), above];
        due.into_iter().flatten().min()
    }

    /// The stage, after this time.
    pub(crate) fn after(&mut self, time: Duration) -> &mut Self {
        self.pass(time);
        self
    }

    /// A person orders something.
    pub(crate) fn order(&mut self, target: HoldTarget, action: HoldAction) -> usize {
        let order = HoldOrder {
            target,
            action,
            reason: "a test".into(),
        };
        let concerned = self.guard.handle_order(&order, self.upstream.now);
        self.publish(Vec::new());
        concerned
    }

    pub(crate) fn set(&mut self, settings: GuardSettings) {
        self.guard.handle_settings(settings);
        self.publish(Vec::new());
    }

    /// The view does not want something any more.
    pub(crate) fn unwant(&mut self, kind: &str, name: &str) {
        let target = Target::Name(Name::from(name));
        self.guard.handle_unwanted(&TypeUrl::new(kind), &target);
        self.upstream.unwant(kind, name);
        self.publish(Vec::new());
    }

    /// The writer's turn.
    pub(crate) fn publish(&mut self, mut changes: Vec<Changes>) {
        let (now, other_views) = (self.upstream.now, self.other_views.as_ref());
        let elsewhere = || self.elsewhere.clone().map(|served| (served, !self.some_stayed));
        self.guard.hear(&mut changes, &self.upstream.cut, elsewhere, now);
        self.guard.cross(&mut changes, &self.upstream.cut, other_views, now);
        self.apply(&changes);
        loop {
            let other_views = self.other_views.as_ref().filter(|_| !self.guard.is_empty());
            let wanted = |type_url: &TypeUrl, name: &Name| match other_views {
                Some(other_views) => other_views.wants(type_url, name),
                None => self.wanted.contains(name.as_str()),
            };
            let released = self.guard.look(&self.upstream.cut, other_views, wanted, now);
            if released.is_empty() {
                break;
            }
            self.apply(&released);
        }
        let Some((holds, events)) = self.guard.take_told() else {
            return;
        };
        self.upstream.cut = self.upstream.cut.with_holds(holds.clone());
        self.holds = holds;
        for event in events {
            let what = format!("{} {}", event.type_url.word(), event.reason);
            self.events.push(match event.change {
                HoldChange::Begun | HoldChange::Joined => format!("+{what} {}", event.removals),
                HoldChange::Ended(end) => format!("-{what} {}", end.word()),
            });
        }
    }

    fn apply(&mut self, changes: &[Changes]) {
        let mut any = false;
        for change in changes {
            let (cut, changed) = self.upstream.cut.with(change);
            any |= !changed.is_empty();
            self.upstream.cut = cut;
        }
        self.cuts += usize::from(any);
    }

    /// Returns the names that are served of a type.
    pub(crate) fn served(&self, kind: &str) -> String {
        let slot = self.upstream.cut.slot(&TypeUrl::new(kind));
        let states = slot.into_iter().flat_map(Slot::halves);
        let present = states.flat_map(|state| state.entries().iter());
        let names: BTreeSet<&str> = present
            .filter(|(_, known)| matches!(known, Known::Present(_)))
            .map(|(name, _)| name.as_str())
            .collect();
        names.into_iter().collect::<Vec<_>>().join(" ")
    }

    /// Returns the body that is served.
    pub(crate) fn body(&self, kind: &str, name: &str) -> Option<Bytes> {
        let slot = self.upstream.cut.slot(&TypeUrl::new(kind))?;
        slot.resource(&Name::from(name)).map(|resource| resource.body())
    }

    /// Returns what began and ended since the last call.
    pub(crate) fn heard(&mut self) -> String {
        let mut events = std::mem::take(&mut self.events);
        events.dedup();
        events.join(", ")
    }

    /// Returns what holds a resource, and what refers to it: `mass`, `referenced by rds r`.
    pub(crate) fn why(&self, kind: &str, name: &str) -> String {
        let kind = TypeUrl::new(kind);
        let of_kind = self.holds.iter().filter(|hold| hold.type_url == kind);
        let mut found = of_kind.filter_map(|hold| Some((hold.reason, hold.removals.get(name)?)));
        match found.next() {
            None => String::new(),
            Some((reason, removal)) => match &removal.by {
                Some(by) if reason.word() == "referenced" => {
                    format!("referenced by {} {}", by.type_url.word(), by.name)
                }
                _ => reason.word().to_owned(),
            },
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "a figure")]
pub(crate) fn clock() -> Instant {
    Instant::now()
}
