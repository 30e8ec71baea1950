//! A row of the table: a name for which something else is served than the control plane has said.
//!
//! Owns what was said of it, and on which grounds that waits. Does not find these grounds.

mod answers;

use std::mem::discriminant;
use std::time::{Duration, Instant};

use super::ground::{Ground, Loss, Order, Referring};
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
    /// It waits for nothing that it leads to or that refers to it, because of this.
    freed: Option<HoldEnd>,
    /// When the resource expires.
    expires: Option<Instant>,
    /// What a removed cluster takes its endpoints from.
    endpoints: Option<Name>,
    /// Endpoints of a removed cluster that were emptied: when the cluster has gone, they stay for a while. Clients may still use it until
    /// they have the routes that leave it, and what they are sent of endpoints does not wait for that.
    follows: bool,
    /// Only a change that waits here can refer to it.
    narrow: bool,
}

impl Row {
    /// A row of what is said now.
    pub(super) const fn new(word: Word, grounds: Vec<Ground>, now: Instant) -> Self {
        Self {
            said: now,
            word,
            grounds,
            freed: None,
            expires: None,
            endpoints: None,
            follows: false,
            narrow: false,
        }
    }

    /// One that an earlier run has held, for this judgement or for what refers to it, and until then for a person.
    pub(super) fn remembered(earlier: &HeldRemoval, judgement: Option<u32>, until: Option<Instant>) -> Self {
        let held = match judgement {
            Some(number) => Ground::Lost(Loss::Judged(number)),
            None => Ground::Named(Referring::Earlier),
        };
        let order = until.zip(earlier.extended.clone()).map(Ground::Ordered);
        let grounds = [held, Ground::Unheard].into_iter().chain(order);
        Self::new(Word::Unheard, grounds.collect(), earlier.since)
    }

    /// The same for a resource that expires then.
    pub(super) fn expiring(self, expires: Option<Instant>) -> Self {
        Self { expires, ..self }
    }

    /// The same for endpoints that `follow` their cluster.
    pub(super) fn following(self, follows: bool) -> Self {
        Self { follows, ..self }
    }

    /// The same for what nothing can refer to, unless `referred`.
    pub(super) fn referred(self, referred: bool) -> Self {
        let freed = if referred { None } else { Some(HoldEnd::Free) };
        Self { freed, ..self }
    }

    /// The same for what only a change that waits here can refer to: another relay holds it for all else, or nobody does.
    pub(super) fn narrow(self, narrow: bool) -> Self {
        Self { narrow, ..self }
    }

    /// Whether only a change that waits here can refer to it.
    pub(super) const fn is_narrow(&self) -> bool {
        self.narrow
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

    /// When it was said first.
    pub(super) const fn said(&self) -> Instant {
        self.said
    }

    /// The clusters that a change leads to.
    pub(super) fn leads_to(&self) -> &[Name] {
        match &self.word {
            Word::Put(_, clusters) => clusters,
            Word::Remove(_) | Word::Empty(_) | Word::Unheard => &[],
        }
    }

    /// What holds it as a part of a large loss.
    pub(super) fn loss(&self) -> Option<Loss> {
        self.find(|ground| {
            if let Ground::Lost(loss) = ground {
                Some(*loss)
            } else {
                None
            }
        })
    }

    /// The number of the judgement that holds it.
    pub(super) fn judgement(&self) -> Option<u32> {
        match self.loss()? {
            Loss::Judged(number) => Some(number),
            Loss::Undecided => None,
        }
    }

    /// When the quiet time for which it waits began.
    pub(super) fn quiet_since(&self) -> Option<Instant> {
        self.find(|ground| {
            if let Ground::Quiet(since) = ground {
                Some(*since)
            } else {
                None
            }
        })
    }

    /// Until when a person holds it, and why.
    fn order(&self) -> Option<&Order> {
        self.find(|ground| {
            if let Ground::Ordered(order) = ground {
                Some(order)
            } else {
                None
            }
        })
    }

    pub(super) fn ordered_until(&self) -> Option<Instant> {
        self.order().map(|(until, _)| *until)
    }

    /// What refers to it, and whether the control plane still sends that.
    pub(super) fn by(&self) -> Option<(&Item, bool)> {
        match self.referring()? {
            Referring::By(item, said) => Some((item, *said)),
            Referring::Perhaps(item, _) => Some((item, true)),
            Referring::Earlier => None,
        }
    }

    /// Until when a listener may refer to it.
    pub(super) fn perhaps_until(&self) -> Option<Instant> {
        match self.referring()? {
            Referring::Perhaps(_, until) => Some(*until),
            Referring::By(..) | Referring::Earlier => None,
        }
    }

    fn referring(&self) -> Option<&Referring> {
        self.find(|ground| if let Ground::Named(by) = ground { Some(by) } else { None })
    }

    /// What a change waits for, and since when the server of that is there.
    fn unready(&self) -> Option<(&Missing, Instant)> {
        self.find(|ground| {
            if let Ground::Unready(missing, there) = ground {
                Some((missing, *there))
            } else {
                None
            }
        })
    }

    fn find<'a, T>(&'a self, which: impl Fn(&'a Ground) -> Option<T>) -> Option<T> {
        self.grounds.iter().find_map(which)
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
        self.grounds
            .retain(|other| discriminant(other) != discriminant(&ground));
        self.grounds.push(ground);
    }

    fn strike(&mut self, which: impl Fn(&Ground) -> bool) {
        self.grounds.retain(|ground| !which(ground));
    }

    /// The control plane says it, or says it again.
    pub(super) fn say(&mut self, word: Word) {
        self.word = word;
        self.strike(|ground| *ground == Ground::Unheard);
    }

    /// An error of the name has come. If that removes the name, no rule holds it. G-15: that content is not valid removes the name only if
    /// it is said `together` with the removal.
    pub(super) fn complain(&mut self, update: Update, together: bool) {
        if let Update::Error(_, Some(error)) = &update
            && (together || error.trouble == Trouble::Said)
        {
            self.free(HoldEnd::Gone);
        }
        match &mut self.word {
            Word::Remove(updates) => updates.push(update),
            Word::Unheard => {
                self.say(Word::Remove(vec![update]));
            }
            Word::Empty(_) | Word::Put(..) => {}
        }
    }

    /// Its cluster has returned: it waits for nothing but a quiet time.
    pub(super) fn restart_quiet(&mut self, now: Instant) {
        self.wait(Ground::Quiet(now));
        self.strike(|ground| matches!(ground, Ground::AfterCluster(_)));
        self.follows = false;
    }

    pub(super) fn end_quiet(&mut self) {
        self.strike(|ground| matches!(ground, Ground::Quiet(_)));
    }

    /// Its cluster has gone: it stays until then, once.
    pub(super) fn outlive(&mut self, until: Instant) {
        self.follows = false;
        self.wait(Ground::AfterCluster(until));
    }

    /// Whether it stays for a while when its cluster has gone.
    pub(super) const fn follows(&self) -> bool {
        self.follows
    }

    /// It is no part of a large loss.
    pub(super) fn acquit(&mut self) {
        self.strike(|ground| matches!(ground, Ground::Lost(_)));
    }

    /// The same by a person, who takes back what was said of the name itself.
    pub(super) fn release(&mut self) {
        self.strike(|ground| matches!(ground, Ground::Lost(_) | Ground::Ordered(_)));
    }

    /// Nothing but the quiet time holds it any more.
    pub(super) fn free(&mut self, end: HoldEnd) {
        self.release();
        self.strike(|ground| matches!(ground, Ground::Named(_)));
        self.freed = Some(end);
    }

    /// What has freed it.
    pub(super) const fn freed(&self) -> Option<HoldEnd> {
        self.freed
    }

    /// Something was found that refers to it (`true`: the control plane still sends that), or nothing is known to.
    pub(super) fn refer(&mut self, source: Option<(Item, bool)>) {
        match source {
            Some((source, said)) => self.wait(Ground::Named(Referring::By(source, said))),
            None => self.strike(|ground| matches!(ground, Ground::Named(_))),
        }
    }

    /// This listener may refer to it until then, or until the end of an earlier wait of this kind.
    pub(super) fn may_be_referred(&mut self, source: Item, until: Instant) {
        let until = self.perhaps_until().unwrap_or(until);
        self.wait(Ground::Named(Referring::Perhaps(source, until)));
    }

    /// The time in which a listener may refer to it is so much longer.
    pub(super) fn prolong(&mut self, time: Duration) {
        for ground in &mut self.grounds {
            if let Ground::Named(Referring::Perhaps(_, until)) = ground {
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
        self.grounds.iter().any(|ground| match ground {
            Ground::Quiet(_) | Ground::Unheard => true,
            Ground::AfterCluster(until) => *until > now,
            Ground::Lost(_) => !self.is_expired(now),
            Ground::Ordered((until, _)) => *until > now && !self.is_expired(now),
            Ground::Named(_) | Ground::Unready(..) => false,
        })
    }

    /// Whether what refers to it counts.
    pub(super) fn can_be_named(&self, now: Instant) -> bool {
        self.freed.is_none() && !self.is_expired(now)
    }

    fn is_expired(&self, now: Instant) -> bool {
        self.expires.is_some_and(|at| at <= now)
    }

    /// Returns what was said.
    pub(super) fn into_updates(self) -> Vec<Update> {
        self.word.into_updates()
    }
}
