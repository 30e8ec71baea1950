// SPDX-License-Identifier: Apache-2.0
//! What one client asks for of one type, and what it holds of it. Checks every resource that arrives against the ledger. Knows
//! the client side of the protocol. Knows nothing of streams; time is an argument.

mod learned;

use std::sync::Arc;

use super::arrival::{Arrival, Eye};
use crate::fleet::held::Held;
use crate::fleet::violation::Violation;
use crate::origin::ledger::{Content, Ledger};
use crate::wire::kind::Kind;
use crate::wire::text;

/// The subscription to one type. Invariant: `held` has, for each resource, the content that the server made the client hold. A
/// resource's position in it is its index if everything is asked for, else the position of its index in `names`.
#[derive(Debug)]
pub(crate) struct Subscription {
    pub(crate) ledger: Arc<Ledger>,
    /// Sorted; none if everything is asked for.
    names: Option<Vec<u32>>,
    /// Names that are no longer asked for; answers to them may still be on their way.
    dropped: Vec<u32>,
    held: Vec<Held>,
    present: u32,
    /// One bit for each position; set if the current response named it.
    named: Vec<u64>,
    /// The number of these bits.
    pub(crate) count: u32,
    /// The resources that appeared or disappeared in this response, for following references.
    pub(crate) came: Vec<u32>,
    pub(crate) went: Vec<u32>,
    /// Whether the response changed what the client holds.
    changed: bool,
    /// How many measured changes it brought.
    delivered: u64,
    /// Whether there was any answer.
    answered: bool,
    /// The number of the newest content that it ever got.
    newest: u64,
}

impl Subscription {
    pub(crate) fn new(ledger: Arc<Ledger>, names: Option<Vec<u32>>) -> Self {
        let all = if ledger.is_learning() {
            0
        } else {
            usize::try_from(ledger.all()).unwrap_or_default()
        };
        let held = vec![Held::default(); names.as_ref().map_or(all, Vec::len)];
        let mut subscription = Self {
            ledger,
            names: None,
            dropped: Vec::new(),
            named: vec![0; held.len().div_ceil(64)],
            held,
            present: 0,
            count: 0,
            came: Vec::new(),
            went: Vec::new(),
            changed: false,
            delivered: 0,
            answered: false,
            newest: 0,
        };
        subscription.names = names.map(|mut names| {
            names.sort_unstable();
            names
        });
        subscription
    }

    pub(crate) fn kind(&self) -> Kind {
        self.ledger.kind()
    }

    /// Returns what is asked for by name; none for everything.
    pub(crate) fn names(&self) -> Option<&[u32]> {
        self.names.as_deref()
    }

    /// Asks for these too; returns those that are new.
    pub(crate) fn ask(&mut self, more: &[u32]) -> Vec<u32> {
        let Some(names) = &mut self.names else {
            return Vec::new();
        };
        let mut new: Vec<u32> = more
            .iter()
            .copied()
            .filter(|it| names.binary_search(it).is_err())
            .collect();
        new.sort_unstable();
        new.dedup();
        if new.is_empty() {
            return new;
        }
        let old = std::mem::take(names).into_iter().zip(std::mem::take(&mut self.held));
        let mut pairs: Vec<_> = old.chain(new.iter().map(|it| (*it, Held::default()))).collect();
        pairs.sort_unstable_by_key(|(name, _)| *name);
        (*names, self.held) = pairs.into_iter().unzip();
        self.named = vec![0; self.held.len().div_ceil(64)];
        self.dropped.retain(|it| new.binary_search(it).is_err());
        new
    }

    /// Drops these; returns those that it had asked for.
    pub(crate) fn drop_names(&mut self, less: &[u32]) -> Vec<u32> {
        let mut gone = Vec::new();
        for index in less {
            let Some(names) = &mut self.names else { break };
            if let Ok(at) = names.binary_search(index) {
                names.remove(at);
                if self.held.remove(at).is_present() {
                    self.present -= 1;
                }
                self.dropped.push(*index);
                gone.push(*index);
                // A response on another stream may have arrived in part, and positions have moved.
                self.named.fill(0);
            }
        }
        gone
    }

    /// A new stream begins, on which nothing was asked for before.
    pub(crate) fn begin(&mut self) {
        self.dropped.clear();
        self.clear();
    }

    /// Forgets everything that it holds.
    pub(crate) fn forget(&mut self) {
        let learning = self.ledger.is_learning();
        let forgotten = |held: Held| if learning { Held::default() } else { held.absent() };
        self.held.iter_mut().for_each(|held| *held = forgotten(*held));
        self.present = 0;
    }

    /// Asks for no name any more.
    pub(crate) fn forget_names(&mut self) {
        self.names = Some(Vec::new());
        self.held.clear();
    }

    /// C-06: returns what the client holds, with the versions.
    pub(crate) fn versions(&self) -> Vec<(u32, String)> {
        let held = (0..self.held.len()).filter_map(|at| {
            let (index, serial) = (
                self.index_at(at)?,
                self.held.get(at).filter(|it| it.is_present())?.serial()?,
            );
            let serial = usize::try_from(serial).ok()?;
            let version = self
                .ledger
                .inspect(index, |history| history.get(serial)?.version().map(text))??;
            Some((index, version))
        });
        held.collect()
    }

    /// Returns the resources that the client holds and that exist.
    pub(crate) fn present(&self) -> impl Iterator<Item = u32> {
        let held = (0..self.held.len()).filter(|at| self.held.get(*at).is_some_and(|it| it.is_present()));
        held.filter_map(|at| self.index_at(at))
    }

    pub(crate) fn has(&self, index: u32) -> bool {
        self.position(index)
            .and_then(|at| self.held.get(at))
            .is_some_and(|held| held.is_present())
    }

    /// Whether the client holds everything that it wants.
    pub(crate) fn is_complete(&self) -> bool {
        if self.ledger.is_learning() {
            return self.answered || self.names.as_ref().is_some_and(Vec::is_empty);
        }
        let wanted = self.names.as_ref().map_or_else(
            || self.ledger.len(),
            |names| u32::try_from(names.len()).unwrap_or(u32::MAX),
        );
        self.present >= wanted
    }

    pub(crate) const fn is_answered(&self) -> bool {
        self.answered
    }

    /// Whether there is newer content than it ever got. Of a client that asks by name this is not known.
    pub(crate) fn is_behind(&self) -> bool {
        self.names.is_none() && self.newest < self.ledger.newest()
    }

    fn position(&self, index: u32) -> Option<usize> {
        match &self.names {
            None => usize::try_from(index).ok().filter(|at| *at < self.held.len()),
            Some(names) => names.binary_search(&index).ok(),
        }
    }

    fn index_at(&self, at: usize) -> Option<u32> {
        match &self.names {
            None => u32::try_from(at).ok(),
            Some(names) => names.get(at).copied(),
        }
    }

    /// Takes one resource.
    pub(crate) fn handle(&mut self, arrival: Arrival<'_>, eye: &mut Eye<'_>) -> Result<(), Violation> {
        let Some((index, at)) = self.name_once(arrival.name)? else {
            return Ok(());
        };
        eye.tally.resources += 1;
        let ledger = Arc::clone(&self.ledger);
        if ledger.is_learning() {
            return self.learn((index, at), Some(arrival.body), eye);
        }
        let outcome = ledger.inspect(index, |history| {
            let Some(content) = history.iter().rev().find(|it| ledger.is(index, it, arrival.mark)) else {
                return Err(Violation::Foreign(text(arrival.name)));
            };
            if let Some(version) = arrival.version {
                arrival.check(content, version, history)?;
            }
            self.move_to((index, at), content, history, eye)
        });
        outcome.unwrap_or_else(|| Err(Violation::Unrequested(text(arrival.name))))
    }

    /// Takes the removal of one name.
    pub(crate) fn handle_removal(&mut self, name: &[u8], eye: &mut Eye<'_>) -> Result<(), Violation> {
        match self.name_once(name)? {
            Some(place) => self.remove(place, eye),
            None => Ok(()),
        }
    }

    /// B-16: a full state removes what it lacks.
    pub(crate) fn handle_full(&mut self, eye: &mut Eye<'_>) -> Result<(), Violation> {
        for at in 0..self.held.len() {
            let named = self.named.get(at / 64).is_some_and(|word| word & 1 << (at % 64) != 0);
            let lacks = !named && self.held.get(at).is_some_and(|it| it.is_present());
            if let Some(index) = self.index_at(at).filter(|_| lacks) {
                self.remove((index, at), eye)?;
            }
        }
        Ok(())
    }

    /// Ends the response; returns whether it changed anything, and how many measured changes it brought.
    pub(crate) fn finish(&mut self) -> (bool, u64) {
        let found = (self.changed, self.delivered);
        self.answered = true;
        self.clear();
        found
    }

    fn clear(&mut self) {
        if self.count > 0 {
            self.named.fill(0);
        }
        self.count = 0;
        self.changed = false;
        self.delivered = 0;
    }

    /// Fails unless the client holds the newest content of everything it wants, and nothing that was removed.
    pub(crate) fn check_final(&self) -> Result<(), Violation> {
        if self.ledger.is_learning() {
            return Ok(());
        }
        let wanted = usize::try_from(self.ledger.len()).unwrap_or_default();
        let end = if self.names.is_some() { self.held.len() } else { wanted };
        for at in 0..end {
            let (Some(index), Some(held)) = (self.index_at(at), self.held.get(at)) else {
                continue;
            };
            let newest = self
                .ledger
                .inspect(index, |history| history.last().map(|it| Held::of(it)));
            let is_newest = newest
                .flatten()
                .is_some_and(|newest| newest == *held || !(newest.is_present() || held.is_present()));
            if !is_newest {
                return Err(Violation::Behind(self.ledger.name(index)));
            }
        }
        Ok(())
    }

    /// Returns the resource with this name. Fails if the client does not want it, or if the response named it before; returns
    /// none if the client dropped it lately.
    fn name_once(&mut self, name: &[u8]) -> Result<Option<(u32, usize)>, Violation> {
        let index = self.ledger.index(name);
        if let Some(index) = index.filter(|_| self.ledger.is_learning() && self.names.is_none()) {
            self.make_room(index);
        }
        let Some((index, at)) = index.and_then(|index| Some((index, self.position(index)?))) else {
            return match index {
                Some(index) if self.dropped.contains(&index) => Ok(None),
                Some(_) | None => Err(Violation::Unrequested(text(name))),
            };
        };
        // C-19, E-12: no name twice in one response.
        match self.named.get_mut(at / 64) {
            Some(word) if *word & 1 << (at % 64) == 0 => {
                *word |= 1 << (at % 64);
                self.count += 1;
                Ok(Some((index, at)))
            }
            Some(_) | None => Err(Violation::Twice(text(name))),
        }
    }

    /// Makes room for a resource that was not known before.
    fn make_room(&mut self, index: u32) {
        let needed = usize::try_from(index).unwrap_or_default() + 1;
        if needed > self.held.len() {
            self.held.resize(needed, Held::default());
            self.named.resize(needed.div_ceil(64), 0);
        }
    }

    /// Takes a removal; fails unless the resource was removed after the content that the client holds.
    fn remove(&mut self, place: (u32, usize), eye: &mut Eye<'_>) -> Result<(), Violation> {
        let ledger = Arc::clone(&self.ledger);
        let held = self.held.get(place.1).and_then(|held| held.serial());
        if ledger.is_learning() {
            return self.learn(place, None, eye);
        }
        let outcome = ledger.inspect(place.0, |history| {
            let gone = |content: &&Arc<Content>| content.hash.is_none() && Some(content.serial) >= held;
            // It may have come back and gone again since.
            match history.iter().find(gone) {
                Some(content) => self.move_to(place, content, history, eye),
                None => Err(Violation::Lost(ledger.name(place.0))),
            }
        });
        outcome.unwrap_or(Ok(()))
    }

    /// The client now holds `content`.
    fn move_to(
        &mut self,
        (index, at): (u32, usize),
        content: &Content,
        history: &[Arc<Content>],
        eye: &mut Eye<'_>,
    ) -> Result<(), Violation> {
        let before = self.held.get(at).copied().unwrap_or_default();
        let after = Held::of(content);
        self.newest = self.newest.max(content.number);
        if before == after {
            eye.tally.repeated += 1;
            return Ok(());
        }
        if let Some(serial) = before.serial() {
            if serial > content.serial && !self.ledger.is_learning() {
                return Err(Violation::Older(self.ledger.name(index)));
            }
            // Contents that were skipped count as delivered, at the time of the one that replaced them.
            let passed = history.iter().rev().skip_while(|it| it.serial > content.serial);
            for passed in passed.take_while(|it| it.serial > serial).filter(|_| eye.awaited) {
                if passed.measured {
                    let taken = eye.now.saturating_duration_since(passed.published);
                    eye.tally.deliver(taken);
                    self.delivered += 1;
                }
                self.ledger.deliver(passed);
            }
        }
        match (before.is_present(), after.is_present()) {
            (false, true) => {
                self.present += 1;
                self.came.push(index);
            }
            (true, false) => {
                self.present -= 1;
                self.went.push(index);
            }
            (true, true) | (false, false) => {}
        }
        if let Some(held) = self.held.get_mut(at) {
            *held = after;
        }
        self.changed = true;
        Ok(())
    }
}
