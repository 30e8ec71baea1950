// SPDX-License-Identifier: Apache-2.0
//! Who must look again because of a change.
//!
//! Owns the way from a change to the bells of the sessions that it concerns. Does not know what has changed in it.

use std::task::Waker;

use super::Demand;
use crate::interest::{Seated, Set};
use xds::{Cut, Name, Target, TypeUrl};

/// Which sessions must look again because of one published change.
pub(crate) enum Ring {
    /// All that want anything of the type.
    Everybody(TypeUrl),
    /// Those that want one of the names and, if `wildcard`, those that want the wildcard.
    Some {
        type_url: TypeUrl,
        names: Vec<Name>,
        wildcard: bool,
    },
}

/// The most pairs of set and name that are collected before bells ring, to bound the memory for them.
const RING_AT_ONCE: usize = 1 << 16;

impl Demand {
    /// Rings the bells of the sessions that a change of this generation concerns. Adds who is to be woken.
    pub(crate) fn ring(&self, ring: &Ring, generation: u64, woken: &mut Vec<Waker>) {
        match ring {
            Ring::Everybody(type_url) => self.ring_everybody(type_url, generation, woken),
            Ring::Some {
                type_url,
                names,
                wildcard,
            } => self.ring_some(type_url, names, *wildcard, generation, woken),
        }
    }

    /// Rings the bells of the sessions that want anything of which nothing is known. Adds who is to be woken.
    pub(crate) fn ring_lacking(&self, cut: &Cut, generation: u64, woken: &mut Vec<Waker>) {
        for lacking in self.leases.unanswered(cut).chunk_by(|a, b| a.0 == b.0) {
            let Some((type_url, _)) = lacking.first() else { continue };
            let names = lacking.iter().filter_map(|(_, target)| match target {
                Target::Wildcard => None,
                Target::Name(name) => Some(name.clone()),
            });
            let names: Vec<Name> = names.collect();
            self.ring_some(type_url, &names, names.len() < lacking.len(), generation, woken);
        }
    }

    /// Wakes these sessions without a change in the view.
    pub(crate) fn nudge(&self, who: impl Fn(&Seated) -> bool) {
        let seated: Vec<_> = {
            let sets = self.sets.read();
            let chosen = sets.iter().filter(|(_, seated)| who(seated));
            chosen.map(|(_, seated)| seated.clone()).collect()
        };
        seated.iter().for_each(|seated| seated.bell.nudge());
    }

    fn ring_everybody(&self, type_url: &TypeUrl, generation: u64, woken: &mut Vec<Waker>) {
        let sets = self.sets.read();
        let mut concerned = vec![false; sets.end()];
        self.leases.everyone(type_url, |set| {
            if let Some(concerned) = concerned.get_mut(set as usize) {
                *concerned = true;
            }
        });
        let concerned = (0..).zip(concerned).filter(|(_, concerned)| *concerned);
        let members = concerned.flat_map(|(set, _)| sets.members(set));
        woken.extend(members.filter_map(|seated| seated.bell.ring_all(type_url, generation)));
    }

    fn ring_some(&self, type_url: &TypeUrl, names: &[Name], wildcard: bool, generation: u64, woken: &mut Vec<Waker>) {
        let wildcard = wildcard.then_some((usize::MAX, Target::Wildcard));
        // C-22: a session that waits for a collection waits for all its members.
        let itself_and_all = |name: &Name| std::iter::once(name.clone()).chain(name.collection());
        let names_at = names.iter().enumerate();
        let names_at = names_at.flat_map(|(at, name)| itself_and_all(name).map(move |name| (at, Target::Name(name))));
        let mut targets = wildcard.into_iter().chain(names_at).peekable();
        while targets.peek().is_some() {
            // A session that moves to another set during the search would be missed: with this lock, none moves.
            let sets = self.sets.read();
            let mut concerned = Vec::new();
            for (at, target) in targets.by_ref() {
                self.leases.waiters(type_url, &target, |set| concerned.push((set, at)));
                if concerned.len() >= RING_AT_ONCE {
                    break;
                }
            }
            concerned.sort_unstable();
            concerned.dedup();
            for concerned in concerned.chunk_by(|a, b| a.0 == b.0) {
                let set = concerned.first().map_or(u32::MAX, |(set, _)| *set);
                let (members, wanted) = (sets.members(set), sets.set(set).map_or(0, Set::len));
                let names = || concerned.iter().filter_map(|(_, at)| names.get(*at));
                woken.extend(members.filter_map(|seated| seated.bell.ring(type_url, names(), wanted, generation)));
            }
        }
    }
}
