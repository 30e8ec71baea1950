// SPDX-License-Identifier: Apache-2.0
//! One poll, which waits for content that its client does not have.
//!
//! Owns that the poll is answered before its client gives up. The machine decides what is new. Subscriptions, limits and the
//! choice of the server are the same as for a stream.

use std::future::poll_fn;
use std::sync::Arc;
use std::task;
use std::time::{Duration, Instant};

use bytes::Buf;

use super::large;
use super::refusal::PollRefusal;
use crate::cache::{Claims, NoPlace};
use crate::clock;
use crate::downstream::shared::Shared;
use crate::downstream::stream::Seats;
use crate::downstream::stream::{count_end, count_no_place};
use crate::identity::Identity;
use crate::proto::envoy::service::discovery::v3::DiscoveryRequest;
use crate::protocol::{self, PollAnswer, PollContent};
use crate::shutdown::Drain;
use crate::telemetry::TypeMetrics;
use crate::wire::Rope;
use crate::xds::TypeUrl;

/// One poll that waits.
pub(in crate::downstream) struct WaitingPoll<'a> {
    shared: &'a Shared,
    metrics: Arc<TypeMetrics>,
    poll: protocol::Poll,
    seats: Seats,
}

/// The result of a poll.
pub(in crate::downstream) enum Polled {
    News(Rope),
    /// The client is up to date.
    Nothing,
}

/// The percentage of the client's timeout that the relay may use; the rest is for the network.
const OUR_PART: u32 = 80;

/// H-04: returns how long a poll may wait for changes: less than the client's own timeout, if it states one.
pub(in crate::downstream) fn hold(theirs: Option<Duration>, most: Duration) -> Duration {
    theirs.map_or(most, |theirs| most.min(theirs / 100 * OUR_PART))
}

impl<'a> WaitingPoll<'a> {
    /// Begins a poll: subscribes to what it asks for.
    pub(in crate::downstream) async fn begin(
        shared: &'a Shared,
        (claims, identity): (&Arc<Claims>, &Identity),
        type_url: TypeUrl,
        asked: DiscoveryRequest,
        now: Instant,
    ) -> Result<Self, PollRefusal> {
        let metrics = shared.metrics.of(&type_url);
        metrics.requests.inc();
        let settings = shared.settings.load().protocol.clone();
        let refused = |end: protocol::End| {
            count_end(shared, &end);
            PollRefusal::of(end)
        };
        let large = asked.resource_names.len() > large::NAMES;
        let (protocol, identity, library) = (settings.clone(), identity.clone(), shared.library.clone());
        let read = move || protocol::Poll::new(protocol, identity, type_url, asked, &*library, now);
        let poll = if large { large::in_turn(read).await? } else { read() };
        let mut poll = poll.map_err(refused)?;
        for (fault, count, _) in poll.faults().iter() {
            shared.metrics.name_fault(fault.word(), count);
        }
        let no_place = |error: NoPlace| {
            count_no_place(shared, &error);
            match error {
                NoPlace::Full(full) => PollRefusal::unavailable(full.to_string()),
                NoPlace::Unfit(_) | NoPlace::Key(_) => PollRefusal::forbidden(error.to_string()),
                NoPlace::Loop(_) => PollRefusal::of(protocol::End::new(
                    protocol::Code::FailedPrecondition,
                    error.to_string(),
                )),
            }
        };
        let node = poll.server().node().cloned().unwrap_or_default();
        let mut seats = Seats::enter(&shared.scopes, &node, claims, settings.timers.move_after).map_err(no_place)?;
        let mut wanted = 0_usize;
        while let Some(want) = poll.poll_want() {
            seats.want(&shared.scopes, &want).map_err(no_place)?;
            wanted += 1;
            if wanted.is_multiple_of(large::NAMES) {
                tokio::task::yield_now().await;
            }
        }
        Ok(Self {
            shared,
            metrics,
            poll,
            seats,
        })
    }

    /// Waits for content that the client does not have; `reply` writes it.
    pub(in crate::downstream) async fn wait(
        mut self,
        hold: Duration,
        mut drain: Drain,
        reply: impl Fn(&PollContent<'_>, &protocol::Poll) -> Result<Rope, PollRefusal>,
    ) -> Result<Polled, PollRefusal> {
        let over = clock::sleep(hold);
        tokio::pin!(over);
        let departing = drain.departing();
        tokio::pin!(departing);
        loop {
            // S-07: a poll does not outlive the rules with which it began.
            if !self
                .poll
                .server()
                .is_under(&self.shared.settings.load().protocol.access)
            {
                return Err(PollRefusal::unavailable(
                    "the rules of the relay have changed; poll again",
                ));
            }
            let sight = self.seats.sight();
            self.poll.look(&sight, &*self.shared.library);
            if let PollAnswer::News(found) = self.poll.answer(&sight, false) {
                return self.news(reply(&found, &self.poll)?);
            }
            self.seats.looked(|_| true);
            drop(sight);
            tokio::select! {
                dismissed = self.changed() => if dismissed {
                    return Err(PollRefusal::unavailable("the relay keeps too much outdated content for slow clients; poll again"));
                },
                () = &mut over => return self.last(reply),
                () = &mut departing => return self.last(reply),
            }
        }
    }

    /// Counts a response.
    fn news(&self, rope: Rope) -> Result<Polled, PollRefusal> {
        self.metrics.responses.inc();
        self.metrics.response_bytes.inc_by(Buf::remaining(&rope) as u64);
        Ok(Polled::News(rope))
    }

    /// Returns the answer after the time is over.
    fn last(
        &mut self,
        reply: impl Fn(&PollContent<'_>, &protocol::Poll) -> Result<Rope, PollRefusal>,
    ) -> Result<Polled, PollRefusal> {
        let sight = self.seats.sight();
        self.poll.look(&sight, &*self.shared.library);
        match self.poll.answer(&sight, true) {
            PollAnswer::News(found) => self.news(reply(&found, &self.poll)?),
            PollAnswer::Nothing => Ok(Polled::Nothing),
            PollAnswer::Open => {
                self.shared.metrics.unanswered.inc();
                Err(PollRefusal::unavailable(format!(
                    "no upstream has answered for {} yet; keep the resources that you have{}",
                    self.poll.type_url(),
                    protocol::End::because(self.poll.server().reason(&sight))
                )))
            }
        }
    }

    /// Waits for a change. Returns whether the poll must end because of it.
    async fn changed(&mut self) -> bool {
        loop {
            let settles = self.seats.poll_timeout();
            let timer = clock::sleep_if(settles);
            let rung = poll_fn(|cx| {
                let mut news = false;
                let rung = self.seats.poll_bells(cx, |_, _| news = true);
                let moved = self.seats.settle(&self.shared.scopes, self.poll.server(), clock::now());
                // Whoever is called without news looks at what the operator has changed.
                if !news && !rung.any && !moved {
                    return task::Poll::Pending;
                }
                task::Poll::Ready(rung.dismissed)
            });
            tokio::select! {
                dismissed = rung => return dismissed,
                () = timer => {}
            }
        }
    }
}
