// SPDX-License-Identifier: Apache-2.0
//! How many connections, streams and subscriptions there may be.
//!
//! Owns the counts, for all clients and for each address. Knows nothing of what a connection or a stream does.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::downstream::burden::{Burden, Burdens};
use crate::downstream::full::{AGAIN, LimitReached};
use crate::downstream::overload::Action;
use crate::downstream::settings::AdmissionLimits;
use crate::downstream::stream::RequestPace;
use crate::wire::Peer;

/// Admits connections, streams and names, as far as the limits allow.
#[derive(Debug)]
pub struct Admission {
    open: Mutex<Open>,
    burdens: Burdens,
}

#[derive(Debug)]
struct Open {
    limits: AdmissionLimits,
    all: Count,
    /// By the address of the peer, if anything is limited for each address.
    addresses: HashMap<IpAddr, Count>,
    /// Names that all streams subscribe to, and versions that their clients brought.
    subscriptions: usize,
    /// Streams that began.
    pace: RequestPace,
    /// The last action against the lack of memory, and the limit of memory.
    short: (Option<Action>, usize),
}

/// A subscription takes some 12 bytes. By default all of them may take about a third of the memory.
const SUBSCRIPTION_BYTES: usize = 32;

#[derive(Clone, Copy, Debug, Default)]
struct Count {
    connections: usize,
    streams: usize,
}

/// A connection that was admitted. It counts as long as this value lives.
#[derive(Debug)]
pub(in crate::downstream) struct Guest {
    admission: Arc<Admission>,
    peer: Peer,
    /// Set if anything is limited for each address.
    address: Option<IpAddr>,
}

/// A stream that was admitted. It counts as long as this value lives, and so do its subscriptions.
#[derive(Debug)]
pub(in crate::downstream) struct Stay {
    guest: Arc<Guest>,
    subscriptions: usize,
    /// Set if it holds much, and its client has acknowledged nothing.
    burden: Option<Arc<Burden>>,
    acknowledged: bool,
}

/// How much of a resource is used, and its limit; 0 means no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Used {
    /// How much is used.
    pub used: usize,
    /// The limit.
    pub max: usize,
}

impl Used {
    /// Whether the limit is reached.
    pub(in crate::downstream) const fn is_full(self) -> bool {
        self.max > 0 && self.used >= self.max
    }
}

impl Admission {
    /// Admits as many as these limits say.
    #[must_use]
    pub fn new(limits: AdmissionLimits, now: Instant) -> Self {
        Self {
            open: Mutex::new(Open {
                limits,
                all: Count::default(),
                addresses: HashMap::new(),
                subscriptions: 0,
                pace: RequestPace::new(limits.new_streams_per_second, now),
                short: (None, 0),
            }),
            burdens: Burdens::default(),
        }
    }

    /// Admits a connection. [`Guest::at`] must follow as soon as it is known from where it comes; so far that is `peer`.
    pub(in crate::downstream) fn connection(self: &Arc<Self>, peer: Peer) -> Result<Guest, LimitReached> {
        let mut open = self.open.lock();
        open.check(Action::RejectConnections)?;
        let max = open.limits.connections;
        within(open.all.connections, max, "connections", Some(AGAIN))?;
        open.all.connections += 1;
        drop(open);
        Ok(Guest {
            admission: self.clone(),
            peer,
            address: None,
        })
    }

    /// Replaces the limits. What was admitted stays, and connections that came while nothing was limited for each address do not
    /// count for theirs.
    pub fn set(&self, limits: AdmissionLimits, now: Instant) {
        let mut open = self.open.lock();
        if limits.new_streams_per_second != open.limits.new_streams_per_second {
            open.pace = RequestPace::new(limits.new_streams_per_second, now);
        }
        open.limits = limits;
    }

    /// Sets what is done for lack of memory: this and all before it. `memory` is the limit of memory.
    pub(in crate::downstream) fn press(&self, last: Option<Action>, memory: usize) {
        self.open.lock().short = (last, memory);
    }

    /// Ends streams that hold much and have acknowledged nothing, until about so many bytes will be free.
    pub(in crate::downstream) fn relieve(&self, bytes: usize) {
        self.burdens.relieve(bytes);
    }

    /// Returns how many connections, streams and subscriptions there are.
    pub fn used(&self) -> [Used; 3] {
        let open = self.open.lock();
        let limits = &open.limits;
        [
            (open.all.connections, limits.connections),
            (open.all.streams, limits.streams),
            (open.subscriptions, open.subscriptions_max()),
        ]
        .map(|(used, max)| Used { used, max })
    }
}

impl Open {
    /// Whether memory is not so short that this is done.
    fn check(&self, action: Action) -> Result<(), LimitReached> {
        let (last, max) = self.short;
        if last >= Some(action) {
            return Err(LimitReached {
                limit: "memory",
                max,
                again: Some(AGAIN),
            });
        }
        Ok(())
    }

    /// Returns how many names streams may subscribe to.
    fn subscriptions_max(&self) -> usize {
        let (_, memory) = self.short;
        self.limits.subscriptions.unwrap_or(memory / SUBSCRIPTION_BYTES)
    }

    fn of(&self, address: IpAddr) -> Count {
        self.addresses.get(&address).copied().unwrap_or_default()
    }
}

impl Guest {
    /// Admits the connection from this peer. To be called once. Connections over Unix sockets have no address, so that no limit
    /// for one address concerns them.
    pub(in crate::downstream) fn at(mut self, peer: Peer) -> Result<Self, LimitReached> {
        self.peer = peer;
        let limits = self.admission.open.lock().limits;
        let own = limits.connections_per_identity > 0 || limits.streams_per_identity > 0;
        if let Some(address) = peer.address().filter(|_| own) {
            let address = address.to_canonical();
            let mut open = self.admission.open.lock();
            let of = open.of(address).connections;
            let max = limits.connections_per_identity;
            let admitted = within(of, max, "connections_per_identity", None);
            if admitted.is_ok() {
                open.addresses.entry(address).or_default().connections += 1;
            }
            drop(open);
            admitted?;
            self.address = Some(address);
        }
        Ok(self)
    }

    /// Where the connection comes from.
    pub(in crate::downstream) const fn peer(&self) -> &Peer {
        &self.peer
    }

    /// Admits a stream of this connection.
    pub(in crate::downstream) fn stream(self: &Arc<Self>, now: Instant) -> Result<Stay, LimitReached> {
        let mut open = self.admission.open.lock();
        let limits = open.limits;
        open.check(Action::RejectStreams)?;
        let of = self.address.map_or(0, |address| open.of(address).streams);
        within(of, limits.streams_per_identity, "streams_per_identity", None)?;
        within(open.all.streams, limits.streams, "streams", Some(AGAIN))?;
        let wait = open.pace.next().saturating_duration_since(now);
        if !wait.is_zero() {
            return Err(LimitReached {
                limit: "new_streams_per_second",
                max: limits.new_streams_per_second as usize,
                again: Some(wait.max(AGAIN)),
            });
        }
        open.pace.count(now);
        open.all.streams += 1;
        if let Some(address) = self.address {
            open.addresses.entry(address).or_default().streams += 1;
        }
        drop(open);
        Ok(Stay {
            guest: self.clone(),
            subscriptions: 0,
            burden: None,
            acknowledged: false,
        })
    }
}

impl Stay {
    /// Where the stream comes from.
    pub(in crate::downstream) fn peer(&self) -> &Peer {
        self.guest.peer()
    }

    /// Sets how many names the stream subscribes to. Fewer than before are always admitted.
    pub(in crate::downstream) fn subscribe(&mut self, names: usize) -> Result<(), LimitReached> {
        if names == self.subscriptions {
            return Ok(());
        }
        let Self {
            guest, subscriptions, ..
        } = self;
        let admission = &guest.admission;
        let mut open = admission.open.lock();
        let others = open.subscriptions - *subscriptions;
        if names > *subscriptions {
            open.check(Action::HoldSubscriptions)?;
            let max = open.subscriptions_max();
            within(others + names - 1, max, "subscriptions", Some(AGAIN))?;
        }
        open.subscriptions = others + names;
        *subscriptions = names;
        drop(open);
        self.weigh();
        Ok(())
    }

    /// Its client has acknowledged a response.
    pub(in crate::downstream) fn acknowledged(&mut self) {
        self.acknowledged = true;
        self.burden = None;
    }

    /// Ready when it must end.
    pub(in crate::downstream) fn poll_end(&self, cx: &Context<'_>) -> Poll<()> {
        let burden = self.burden.as_ref();
        burden.map_or(Poll::Pending, |burden| burden.poll_end(cx))
    }

    fn weigh(&mut self) {
        match &self.burden {
            Some(burden) => burden.weighs(self.subscriptions),
            None if self.acknowledged => {}
            None => self.burden = self.guest.admission.burdens.of(self.subscriptions),
        }
    }

    /// The same without any limit.
    pub(in crate::downstream) fn count_names(&mut self, names: usize) {
        if names != self.subscriptions {
            let mut open = self.guest.admission.open.lock();
            open.subscriptions = open.subscriptions - self.subscriptions + names;
            self.subscriptions = names;
            drop(open);
            self.weigh();
        }
    }
}

impl Drop for Stay {
    fn drop(&mut self) {
        let Guest { admission, address, .. } = &*self.guest;
        let mut open = admission.open.lock();
        open.all.streams -= 1;
        open.subscriptions -= self.subscriptions;
        if let Some(count) = address.and_then(|address| open.addresses.get_mut(&address)) {
            count.streams -= 1;
        }
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        let mut open = self.admission.open.lock();
        open.all.connections -= 1;
        let Some(address) = self.address else { return };
        let left = open.addresses.get_mut(&address).map_or(0, |count| {
            count.connections -= 1;
            count.connections
        });
        // All streams of a connection have ended before it.
        if left == 0 {
            open.addresses.remove(&address);
        }
    }
}

fn within(used: usize, max: usize, limit: &'static str, again: Option<Duration>) -> Result<(), LimitReached> {
    if max > 0 && used >= max {
        return Err(LimitReached { limit, max, again });
    }
    Ok(())
}
