// SPDX-License-Identifier: Apache-2.0
//! A row of the table: a name for which something else is served than the control plane has said.
//!
//! Owns what was said of it, and on which grounds that waits. Does not find these grounds.

mod answers;

use std::mem::discriminant;
use std::time::{Duration, Instant};

use super::ground::{Ground, HeldLoss, Order, Referring};
use super::missing::Missing;
use super::word::Word;
use xds::{HeldRemoval, HoldEnd, Name, Trouble, TypeUrl, Update};

/// One half of a type: what the wildcard covers (`true`), or what was requested by name.
pub(super) type Half = (TypeUrl, bool);

/// A resource in one half of its type.
pub(super) type Item = (Half, Name);

/// What waits of one name. It goes when it has no ground any more.
#[derive(Debug)]
pub(super) struct Row {
    /// When it was said first, perhaps to an earlier run of the relay.
    said: Instant,
    word: Word,
    grounds: Vec<Ground>,
    referrers: Referrers,
    /// When the resource expires.
    expires: Option<Instant>,
    /// What a removed cluster takes its endpoints from.
    endpoints: Option<Name>,
}

/// What can still refer to a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Referrers {
    /// All that is served.
    All,
    /// What another relay cannot know, which holds it for all else: changes that wait here, older contents, and what clients read of
    /// other servers.
    Beside,
    /// The first two of these.
    Here,
    /// Nothing, and it waits for nothing that it leads to, because of this.
    Nothing(HoldEnd),
}

/// The first ground of a row of this form, and what is asked of it.
macro_rules! found {
    ($row:expr, $form:pat => $answer:expr) => {
        $row.grounds
            .iter()
            .find_map(|ground| if let $form = ground { Some($answer) } else { None })
    };
}

impl Row {
    /// A row of what is said now.
    pub(super) const fn new(word: Word, grounds: Vec<Ground>, now: Instant) -> Self {
        Self {
            said: now,
            word,
            grounds,
            referrers: Referrers::All,
            expires: None,
            endpoints: None,
        }
    }

    /// One that an earlier run has held, for this judgement or for what refers to it, and for a person.
    pub(super) fn remembered(earlier: &HeldRemoval, judgement: Option<u32>, order: Option<Order>) -> Self {
        let held = match judgement {
            Some(number) => Ground::Lost(HeldLoss::Judged(number)),
            None => Ground::Named(None),
        };
        let grounds = [held, Ground::Unheard].into_iter();
        let grounds = grounds.chain(order.map(Ground::Ordered));
        Self::new(Word::Unheard, grounds.collect(), earlier.since)
    }

    /// The same for a resource that expires then.
    pub(super) fn expiring(self, expires: Option<Instant>) -> Self {
        Self { expires, ..self }
    }

    /// The same for what these can refer to.
    pub(super) fn referred(self, referrers: Referrers) -> Self {
        Self { referrers, ..self }
    }

    /// What can still refer to it.
    pub(super) const fn referrers(&self) -> Referrers {
        self.referrers
    }

    /// Whether it is a change that waits; else it is a removal, or the like.
    pub(super) const fn is_change(&self) -> bool {
        matches!(self.word, Word::Put(..))
    }

    pub(super) const fn is_remembered(&self) -> bool {
        matches!(self.word, Word::Unheard)
    }

    /// Whether it is not a removal, but an endpoint assignment that has become empty.
    pub(super) const fn is_emptied(&self) -> bool {
        matches!(self.word, Word::Empty(_))
    }

    /// Whether the control plane has said that the resource is gone.
    pub(super) const fn is_removal(&self) -> bool {
        matches!(self.word, Word::Remove(_))
    }

    /// When it was said first.
    pub(super) const fn said(&self) -> Instant {
        self.said
    }

    /// The clusters that a change leads to.
    pub(super) fn leads_to(&self) -> &[Name] {
        if let Word::Put(_, clusters) = &self.word {
            clusters
        } else {
            &[]
        }
    }

    /// What holds it as a part of a large loss.
    pub(super) fn loss(&self) -> Option<HeldLoss> {
        found!(self, Ground::Lost(loss) => *loss)
    }

    /// The number of the judgement that holds it.
    pub(super) fn judgement(&self) -> Option<u32> {
        found!(self, Ground::Lost(HeldLoss::Judged(number)) => *number)
    }

    /// When the quiet time for which it waits began.
    pub(super) fn quiet_since(&self) -> Option<Instant> {
        found!(self, Ground::Quiet(since) => *since)
    }

    /// Until when a person holds it, and why.
    fn order(&self) -> Option<&Order> {
        found!(self, Ground::Ordered(order) => order)
    }

    pub(super) fn ordered_until(&self) -> Option<Instant> {
        self.order().map(|(until, _)| *until)
    }

    /// What refers to it, and whether the control plane still sends that.
    pub(super) fn by(&self) -> Option<(&Item, bool)> {
        self.referring().map(|referring| (&referring.by, referring.said))
    }

    /// Until when something may refer to it.
    pub(super) fn perhaps_until(&self) -> Option<Instant> {
        self.referring()?.until
    }

    fn referring(&self) -> Option<&Referring> {
        found!(self, Ground::Named(Some(referring)) => referring)
    }

    /// What a change waits for, and since when the server of that is there.
    fn unready(&self) -> Option<(&Missing, Instant)> {
        found!(self, Ground::Unready(missing, there) => (missing, *there))
    }

    /// What the cluster takes its endpoints from.
    pub(super) const fn endpoints(&self) -> Option<&Name> {
        self.endpoints.as_ref()
    }

    pub(super) fn set_endpoints(&mut self, endpoints: Option<Name>) {
        self.endpoints = endpoints;
    }

    /// It has this ground, instead of another one of the sort.
    pub(super) fn wait(&mut self, ground: Ground) {
        self.strike(|other| discriminant(other) == discriminant(&ground));
        self.grounds.push(ground);
    }

    fn strike(&mut self, which: impl Fn(&Ground) -> bool) {
        self.grounds.retain(|ground| !which(ground));
    }

    /// The control plane says it, or says it again. What was only emptied before may be removed now, and these refer to that.
    pub(super) fn say(&mut self, word: Word, referrers: Referrers) {
        self.word = word;
        if self.referrers == Referrers::Nothing(HoldEnd::Free) {
            self.referrers = referrers;
        }
        self.strike(|ground| *ground == Ground::Unheard);
    }

    /// It was held elsewhere before, for the same loss.
    pub(super) fn resume(&mut self, before: &HeldRemoval) {
        self.said = self.said.min(before.since);
        before.extended.iter().for_each(|order| self.extend(order));
    }

    /// An error of the name has come. If that removes the name, no rule holds it. G-15: that content is not valid removes the name only if
    /// it is said `together` with the removal.
    pub(super) fn complain(&mut self, update: Update, together: bool) {
        if let Update::Error(_, Some(error)) = &update
            && (together || error.trouble == Trouble::Said)
        {
            self.free(HoldEnd::Gone);
        }
        if let Word::Remove(updates) = &mut self.word {
            updates.push(update);
        }
    }

    /// Its cluster has returned: it waits for nothing but a quiet time.
    pub(super) fn restart_quiet(&mut self, now: Instant) {
        self.strike(|ground| matches!(ground, Ground::Named(_)));
        self.wait(Ground::Quiet(now));
        self.referrers = Referrers::Nothing(HoldEnd::Free);
    }

    pub(super) fn end_quiet(&mut self) {
        self.strike(|ground| matches!(ground, Ground::Quiet(_)));
    }

    /// Whether it stays for a while when its cluster has gone: endpoints of a removed cluster that were emptied. Clients may still use the
    /// cluster until they have the routes that leave it, and what they are sent of endpoints does not wait for that.
    pub(super) fn follows(&self) -> bool {
        self.is_emptied() && self.freed().is_none()
    }

    /// Its cluster has gone: it stays until then, once.
    pub(super) fn outlive(&mut self, until: Instant) {
        self.referrers = Referrers::Nothing(HoldEnd::Free);
        self.wait(Ground::AfterCluster(until));
    }

    /// It is no part of a large loss.
    pub(super) fn end_loss(&mut self) {
        self.strike(|ground| matches!(ground, Ground::Lost(_)));
    }

    /// The same by a person, who takes back what was said of the name itself.
    pub(super) fn release(&mut self) {
        self.strike(|ground| matches!(ground, Ground::Lost(_) | Ground::Ordered(_)));
    }

    /// Nothing but the quiet time holds it any more.
    pub(super) fn free(&mut self, end: HoldEnd) {
        self.release();
        self.referrers = Referrers::Nothing(end);
    }

    /// Why nothing can refer to it any more.
    pub(super) const fn freed(&self) -> Option<HoldEnd> {
        match self.referrers {
            Referrers::Nothing(end) => Some(end),
            Referrers::All | Referrers::Beside | Referrers::Here => None,
        }
    }

    /// This was found to refer to it, or nothing was. The time of what may refer to it does not begin anew. Returns whether that is new.
    pub(super) fn refer(&mut self, referring: Option<Referring>) -> bool {
        let earlier = self.perhaps_until();
        let referring = referring.map(|new| Referring {
            until: new.until.map(|until| earlier.unwrap_or(until)),
            ..new
        });
        if self.referring() == referring.as_ref() {
            return false;
        }
        match referring {
            Some(new) => self.wait(Ground::Named(Some(new))),
            None => self.strike(|ground| matches!(ground, Ground::Named(_))),
        }
        true
    }

    /// The time in which a listener may refer to it is so much longer.
    pub(super) fn prolong(&mut self, time: Duration) {
        for ground in &mut self.grounds {
            if let Ground::Named(Some(Referring { until: Some(until), .. })) = ground {
                *until += time;
            }
        }
    }

    /// A change waits for this.
    pub(super) fn wait_for(&mut self, missing: Missing, now: Instant) {
        let there = self.unready().filter(|(before, _)| !before.is_away());
        let there = there.map_or(now, |(_, there)| there);
        self.wait(Ground::Unready(missing, there));
    }

    /// A person holds it until then.
    pub(super) fn extend(&mut self, order: &Order) {
        let longest = self.order().max(Some(order)).cloned();
        longest.into_iter().for_each(|order| self.wait(Ground::Ordered(order)));
    }

    /// What a person said of it is over, and the control plane has not spoken of it yet.
    pub(super) fn forget_order(&mut self) {
        self.strike(|ground| matches!(ground, Ground::Ordered(_)));
    }

    /// Whether it waits, whatever refers to it.
    pub(super) fn waits(&self, now: Instant) -> bool {
        let expired = self.is_expired(now);
        self.grounds.iter().any(|ground| ground.waits(expired, now))
    }

    /// Whether what refers to it counts.
    pub(super) fn can_be_named(&self, now: Instant) -> bool {
        self.freed().is_none() && !self.is_expired(now)
    }

    fn is_expired(&self, now: Instant) -> bool {
        self.expires.is_some_and(|at| at <= now)
    }

    /// Returns what was said.
    pub(super) fn into_updates(self) -> Vec<Update> {
        self.word.into_updates()
    }
}
