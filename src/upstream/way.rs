// SPDX-License-Identifier: Apache-2.0
//! One of a view's two sets of streams to its server: a stream that the types share, and separate streams for types that end it.
//!
//! Owns which type is asked for on which stream. Does not decide which type is suspected: [`Suspects`] does.
//!
//! [`Suspects`]: crate::protocol::Suspects

use std::collections::BTreeSet;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use super::leg::Leg;
use super::probe::Probe;
use super::status::Board;
use super::writer::Talk;
use crate::protocol::Client;
use crate::telemetry::TracedArrival;
use crate::xds::{Changes, Name, ServerState, ServerWords, Slot, Target as Wanted, TypeUrl, Want};

/// One of a view's two sets of streams to its server.
///
/// Invariant: a type is in `apart` exactly while it is suspected.
pub struct ViewStreams {
    shared: Leg,
    apart: Vec<Apart>,
    /// What is asked beside the shared stream, one question at a time.
    probe: Option<Box<Probe>>,
    /// Suspected types that `take_unserved` has not returned yet.
    unanswered: Vec<TypeUrl>,
}

/// A separate stream for suspected types.
struct Apart {
    types: BTreeSet<TypeUrl>,
    leg: Leg,
}

/// How many separate streams there may be; further suspected types share the last one.
const APART_MAX: usize = 8;

impl ViewStreams {
    /// `shared` is the stream that all types share, except those that end it.
    pub(super) fn new(shared: Leg) -> Self {
        Self {
            shared,
            apart: Vec::new(),
            probe: None,
            unanswered: Vec::new(),
        }
    }

    fn leg(&mut self, type_url: &TypeUrl) -> &mut Leg {
        let apart = self.apart.iter_mut().find(|apart| apart.types.contains(type_url));
        apart.map_or(&mut self.shared, |apart| &mut apart.leg)
    }

    fn legs(&mut self) -> impl Iterator<Item = &mut Leg> {
        let apart = self.apart.iter_mut().map(|apart| &mut apart.leg);
        std::iter::once(&mut self.shared).chain(apart)
    }

    /// Moves newly suspected types to streams of their own and rejoined types back. If a separate stream failed, answers those
    /// who wait for its types.
    fn judge(&mut self, changes: &mut Vec<Changes>) {
        for type_url in self.shared.take_suspected() {
            self.unanswered.push(type_url.clone());
            self.separate(type_url, changes);
        }
        for Apart { types, leg } in &mut self.apart {
            if let Some(words) = leg.take_trouble(changes) {
                types.iter().for_each(|type_url| self.shared.troubled(type_url, &words));
            }
        }
        for type_url in self.shared.take_rejoined() {
            self.reunite(&type_url, changes);
        }
    }

    /// E-04, E-27: asks on another stream what the shared one leaves open. A type for which it is deaf has a stream of its own from now on.
    fn doubt(&mut self, changes: &mut Vec<Changes>) {
        while let Some(doubt) = self.shared.client().take_doubt(self.probe.is_none()) {
            if doubt.is_of_versions() || self.probe.is_none() && self.shared.asks_anew(doubt.type_url()) {
                self.probe = Some(Box::new(Probe::new(doubt, self.shared.beside())));
            }
        }
        // The end of the shared stream is the end of the question.
        self.probe.take_if(|_| !self.shared.is_connected());
        if let Some(probe) = &mut self.probe {
            probe.turn();
        }
        if let Some(probe) = self.probe.take_if(|probe| probe.is_over()) {
            let (doubt, shown) = probe.into_outcome();
            if let Some(type_url) = self.shared.decide(&doubt, shown, changes) {
                self.separate(type_url, changes);
                self.legs().for_each(|leg| leg.turn(changes));
            }
        }
    }

    fn separate(&mut self, type_url: TypeUrl, changes: &mut Vec<Changes>) {
        if self.apart.len() < APART_MAX {
            let (types, leg) = (BTreeSet::new(), self.shared.beside());
            self.apart.push(Apart { types, leg });
        }
        let Some(apart) = self.apart.last_mut() else { return };
        self.shared.hand_over(&type_url, &mut apart.leg, changes);
        apart.types.insert(type_url);
    }

    fn reunite(&mut self, type_url: &TypeUrl, changes: &mut Vec<Changes>) {
        for apart in &mut self.apart {
            if apart.types.remove(type_url) {
                apart.leg.hand_over(type_url, &mut self.shared, changes);
            }
        }
        self.apart.retain(|apart| !apart.types.is_empty());
    }
}

impl Talk for ViewStreams {
    fn want(&mut self, want: &Want) -> Vec<Changes> {
        self.leg(&want.type_url).want(want)
    }

    fn restore(&mut self, type_url: &TypeUrl, target: &Wanted, slot: &Slot) -> Option<Changes> {
        self.leg(type_url).restore(type_url, target, slot)
    }

    fn turn(&mut self, changes: &mut Vec<Changes>) {
        self.judge(changes);
        self.legs().for_each(|leg| leg.turn(changes));
        self.doubt(changes);
    }

    fn poll(&mut self, cx: &mut Context<'_>, changes: &mut Vec<Changes>) -> Poll<()> {
        let ready = self.legs().filter_map(|leg| match leg.poll(cx, changes) {
            Poll::Ready(()) => Some(()),
            Poll::Pending => None,
        });
        let ready = ready.count() > 0;
        let probed = self.probe.as_mut().is_some_and(|probe| probe.poll(cx).is_ready());
        if ready || probed {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let apart = self.apart.iter().map(|apart| apart.leg.poll_timeout());
        let probe = self.probe.as_ref().and_then(|probe| probe.poll_timeout());
        let all = apart.chain([self.shared.poll_timeout(), probe]);
        all.flatten().min()
    }

    /// The stream of a suspected type shows the server's state only if nothing else is asked for.
    fn server_state(&self) -> Option<ServerState> {
        let apart = || self.apart.iter().find_map(|apart| apart.leg.server_state());
        self.shared.server_state().or_else(apart)
    }

    fn take_unserved(&mut self) -> Vec<TypeUrl> {
        let mut unserved = std::mem::take(&mut self.unanswered);
        unserved.extend(self.legs().flat_map(Leg::take_unserved));
        unserved
    }

    fn take_arrivals(&mut self) -> Vec<TracedArrival> {
        self.legs().flat_map(Leg::take_arrivals).collect()
    }

    fn each_stream(&mut self, act: &mut dyn FnMut(&mut Leg)) {
        self.legs().for_each(act);
    }

    fn clients(&mut self) -> Vec<&mut Client> {
        self.legs().map(Leg::client).collect()
    }

    fn supersede(&mut self) {
        self.legs().for_each(Leg::supersede);
    }

    fn come_through(&mut self, relays: &[String]) {
        self.legs().for_each(|leg| leg.come_through(relays));
    }

    fn take_loops(&mut self) -> Vec<String> {
        self.legs().filter_map(|leg| leg.looped().map(str::to_owned)).collect()
    }

    fn settle_loops(&mut self, changes: &mut Vec<Changes>) {
        self.legs().for_each(|leg| leg.settle_loop(changes));
    }

    fn board(&self) -> &Board {
        self.shared.board()
    }

    fn words(&self, type_url: &TypeUrl, name: &Name) -> Option<ServerWords> {
        let apart = self.apart.iter().find(|apart| apart.types.contains(type_url));
        apart.map_or(&self.shared, |apart| &apart.leg).words(type_url, name)
    }

    fn removal_times(&self) -> (Duration, Duration) {
        self.shared.removal_times()
    }
}
