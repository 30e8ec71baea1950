// SPDX-License-Identifier: Apache-2.0
//! What judgements hold in the table.
//!
//! Owns that a judgement begins and ends for all that it holds. Does not judge.

use std::time::Instant;

use super::super::ground::{Ground, HeldLoss, Order};
use super::super::waiting::{Item, Row};
use super::Table;
use xds::{HeldRemoval, Hold, HoldClock, HoldEnd, HoldReason, TypeUrl};

impl Table {
    pub(in super::super) fn has_judgements(&self) -> bool {
        !self.clocks.judgements.is_empty()
    }

    /// A judgement holds these: the one with this number, if it holds anything still. Returns its number.
    pub(in super::super) fn hold_loss(
        &mut self,
        of: &TypeUrl,
        number: Option<u32>,
        lost: &[Item],
        now: Instant,
    ) -> u32 {
        let time = self.clocks.settings.hold.of(of.kind());
        let number = self.clocks.judgements.make(of, number, time, now);
        for item in lost {
            self.change(item, HoldEnd::Free, |row| {
                row.wait(Ground::Lost(HeldLoss::Judged(number)))
            });
        }
        number
    }

    /// An earlier run has made this judgement.
    pub(in super::super) fn remember(&mut self, hold: &Hold, now: Instant) {
        if let Some((number, clock)) = hold.judgement.zip(hold.clock) {
            let key = (hold.type_url.clone(), number);
            let time = self.clocks.settings.hold.of(key.0.kind());
            self.clocks.judgements.remember(key, clock, time, now);
        }
    }

    /// Judgements of this type may hold what was held elsewhere `before`: such a clock goes on here, and what a person said.
    pub(in super::super) fn resume<'a>(
        &mut self,
        type_url: &TypeUrl,
        before: impl Fn(&Item) -> Option<(HoldClock, &'a HeldRemoval)>,
        now: Instant,
    ) {
        for key in self.clocks.judgements.of(type_url) {
            let items = self.held_for(type_url, HoldReason::Mass, Some(key.1));
            let Some(held) = items.iter().map(&before).collect::<Option<Vec<_>>>() else {
                continue;
            };
            let clocks = held.iter().map(|(clock, _)| *clock);
            if let Some(longest) = clocks.max_by_key(|clock| clock.left(now)) {
                let times = &self.clocks.settings.hold;
                self.clocks.judgements.resume(&key, longest, times, now);
            }
            for (item, (_, before)) in items.iter().zip(held) {
                self.change(item, HoldEnd::Free, |row| row.resume(before));
            }
        }
    }

    /// The clocks of the judgements of each type run from then on, or stand.
    pub(in super::super) fn run_clocks(&mut self, from: impl Fn(&TypeUrl) -> Option<Instant>, now: Instant) {
        if self.clocks.judgements.run(from, &self.clocks.settings.hold, now) {
            self.show_again(self.select(|_| true, |removal| removal.judgement().is_some()));
        }
    }

    /// A person holds these judgements until then.
    pub(in super::super) fn extend(&mut self, type_url: &TypeUrl, number: Option<u32>, order: &Order) {
        self.clocks.judgements.extend(type_url, number, order);
        self.show_again(self.held_for(type_url, HoldReason::Mass, number));
    }

    /// Ends the judgements whose time is over. A person may hold single names for longer.
    pub(in super::super) fn end_judgements(&mut self, now: Instant) {
        while let Some(key) = self.clocks.judgements.over(now) {
            let names = self.held_for(&key.0, HoldReason::Mass, Some(key.1));
            let ordered = |item: &Item| self.get(item).and_then(Row::ordered_until).filter(|until| *until > now);
            let longer = names.iter().filter_map(ordered).max();
            let over: Vec<Item> = names.into_iter().filter(|item| ordered(item).is_none()).collect();
            self.clocks.judgements.end(&key, longer);
            let end = |item| self.change(item, HoldEnd::Clock, Row::end_loss);
            over.iter().for_each(end);
        }
    }
}
