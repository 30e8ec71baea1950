// SPDX-License-Identifier: Apache-2.0
//! What a row answers: when it is looked at, until when it waits, and what operators are told of it.
//!
//! Owns how the answers of its grounds become one. Changes nothing.

use std::time::Instant;

use super::super::clocks::Clocks;
use super::super::ground::{Ground, Order, Reason};
use super::{Half, Row};
use xds::{HeldRemoval, HoldEnd, HoldReason, Link, Referrer, TypeUrl};

impl Row {
    /// When it must be looked at again by itself. A judgement ends for all that it holds.
    pub(in super::super) fn alarms(&self, of: &TypeUrl, clocks: &Clocks) -> impl Iterator<Item = Instant> {
        let own = self.grounds.iter().filter(|ground| !matches!(ground, Ground::Lost(_)));
        let own = own.filter_map(move |ground| ground.until(of, self.said, clocks));
        own.chain(self.expires)
    }

    /// Returns why it goes, when it has no ground any more. Operators hear of a clock if they were told of what it ended.
    pub(in super::super) fn end(&self, of: &TypeUrl, clocks: &Clocks, now: Instant) -> HoldEnd {
        if self.is_expired(now) {
            return HoldEnd::Gone;
        }
        let over = |ground: &&Ground| ground.until(of, self.said, clocks).is_some_and(|until| until <= now);
        let by_clock = self.grounds.iter().filter(over).any(|ground| ground.reason().is_some());
        let ended = if by_clock { HoldEnd::Clock } else { HoldEnd::Free };
        self.freed().unwrap_or(ended)
    }

    /// Returns why it is held, as far as operators are told: the quiet time is no hold.
    pub(in super::super) fn reason(&self) -> Option<Reason> {
        let reasons = self.grounds.iter().filter_map(Ground::reason);
        reasons.min_by_key(|(reason, _)| *reason == HoldReason::Referenced)
    }

    /// When it goes at the latest; `None`: there is no clock. What refers to it may hold it longer than a person does, and so does the
    /// silence of the control plane since the start.
    pub(in super::super) fn until(&self, of: &TypeUrl, clocks: &Clocks) -> Option<Instant> {
        let until = |ground: &Ground| ground.until(of, self.said, clocks);
        let endless = |ground: &Ground| {
            let silent = *ground == Ground::Unheard && self.order().is_none();
            silent || matches!(ground, Ground::Named(Some(_))) && until(ground).is_none()
        };
        if self.loss().is_none() && self.grounds.iter().any(endless) {
            return None;
        }
        self.grounds.iter().filter_map(until).max()
    }

    /// Returns it as operators see it; `order`: what a person said of its judgement.
    pub(in super::super) fn shown(&self, (of, wildcard): &Half, clocks: &Clocks, order: Option<&Order>) -> HeldRemoval {
        let unready = self.unready();
        let unready = unready.map(|(missing, _)| (missing.missing(), !missing.is_away()));
        let named = self.by().map(|(((of, _), name), said)| ((of, name), said));
        let by = named.or(unready).map(|((type_url, name), said)| Referrer {
            type_url: type_url.clone(),
            name: name.clone(),
            link: match said {
                true if self.perhaps_until().is_some() => Link::Perhaps,
                true => Link::Sent,
                false => Link::Unsent,
            },
        });
        HeldRemoval {
            since: self.said,
            until: self.until(of, clocks),
            by,
            emptied: self.is_emptied(),
            wildcard: *wildcard,
            extended: self.order().max(order).cloned(),
        }
    }
}
