// SPDX-License-Identifier: Apache-2.0
//! What an order for held removals has done.
//!
//! Owns the comparison of what was held before with what is held afterwards, and the words for it. Gives no order.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Instant;

use super::shown::counted;
use crate::clock::WallClock;
use crate::xds::{
    HeldRemoval, Hold, HoldAction, HoldCause, HoldReason, HoldTarget, HoldWords, Name, TypeUrl, one_or_several,
    printable,
};

/// How many there are, by reason, and by what holds them in words.
type Counts = BTreeMap<HoldReason, BTreeMap<String, usize>>;

/// What became of the removals that an order was for, over all views.
#[derive(Debug)]
pub(super) struct Outcome {
    action: HoldAction,
    given: Instant,
    /// How many are not held any more, by what held them.
    gone: Counts,
    /// How many others are not, which only a reference had held, by type.
    along: BTreeMap<String, usize>,
    /// What holds one that stays, in words, and how many there are.
    kept: Counts,
    /// When the first of those that stay goes.
    until: Option<Instant>,
}

impl Outcome {
    /// Of an order that was given then.
    pub(super) const fn new(action: HoldAction, given: Instant) -> Self {
        Self {
            action,
            given,
            gone: BTreeMap::new(),
            along: BTreeMap::new(),
            kept: BTreeMap::new(),
            until: None,
        }
    }

    /// Compares the holds of a view. The order was for this target there.
    pub(super) fn note(&mut self, target: &HoldTarget, before: &[Hold], after: &[Hold]) {
        for hold in before {
            let word = hold.type_url.word();
            for name in hold.removals.keys() {
                let left = find(after, &hold.type_url, name);
                match (left, target.is(hold, name)) {
                    (Some((hold, removal)), true) => self.keep(hold, name, removal, after),
                    (None, true) => count(&mut self.gone, hold, ground(hold)),
                    (None, false) if hold.reason == HoldReason::Referenced => {
                        *self.along.entry(word.to_owned()).or_default() += 1
                    }
                    (_, false) => {}
                }
            }
        }
    }

    fn keep(&mut self, hold: &Hold, name: &Name, removal: &HeldRemoval, after: &[Hold]) {
        let asked = match self.action {
            HoldAction::Extend(time) => self.given + time,
            HoldAction::Release => self.given,
        };
        // Without a clock, what refers to it may go before the time that was asked for; then that counts.
        let until = removal.until.unwrap_or(asked).max(asked);
        self.until = Some(self.until.map_or(until, |first| first.min(until)));
        let by = match (self.action, &removal.by) {
            (HoldAction::Release, Some(by)) => {
                let one = printable(name.as_str());
                let why = HoldCause::of(hold.reason, removal, after).why("it", Some(by));
                format!("{}, such as {one}: {why}", ground(hold))
            }
            (HoldAction::Release, None) | (HoldAction::Extend(_), _) => ground(hold),
        };
        count(&mut self.kept, hold, by);
    }

    /// Returns it in sentences.
    pub(super) fn text(&self, clock: WallClock) -> String {
        let mut text = String::new();
        // Writing to memory cannot fail.
        match self.action {
            HoldAction::Extend(_) => {
                let until = self.until.map_or_else(String::new, |until| clock.short(until));
                for (what, words, number, all) in each(&self.kept) {
                    let _ = writeln!(text, "{what} {} {until}: {all}", one_or_several(words.extended, number));
                }
                for (what, ..) in each(&self.gone) {
                    let _ = writeln!(text, "{what} went before the order came");
                }
            }
            HoldAction::Release => {
                for (what, words, number, all) in each(&self.gone) {
                    let _ = writeln!(text, "{what} {}: {all}", one_or_several(words.released, number));
                }
                if !self.along.is_empty() {
                    let others = counted(self.along.values().sum(), "other");
                    let _ = writeln!(
                        text,
                        "with {others}, to which nothing else refers: {}",
                        listed(&self.along)
                    );
                }
                for (what, _, number, all) in each(&self.kept) {
                    let _ = writeln!(text, "{what} {}: {all}", one_or_several(["stays", "stay"], number));
                }
            }
        }
        text
    }
}

fn count(counts: &mut Counts, hold: &Hold, what: String) {
    *counts.entry(hold.reason).or_default().entry(what).or_default() += 1;
}

/// Returns for each reason how many there are with their noun, its words, their number, and a list of them.
fn each(counts: &Counts) -> impl Iterator<Item = (String, &'static HoldWords, usize, String)> {
    counts.iter().map(|(reason, counts)| {
        let (words, number) = (HoldWords::of(*reason), counts.values().sum());
        (words.counted(number), words, number, listed(counts))
    })
}

fn find<'a>(holds: &'a [Hold], type_url: &TypeUrl, name: &Name) -> Option<(&'a Hold, &'a HeldRemoval)> {
    let mut of_type = holds.iter().filter(|hold| hold.type_url == *type_url);
    of_type.find_map(|hold| Some((hold, hold.removals.get(name)?)))
}

/// Returns what holds something: `cds of judgement 3`, or `cds by reference`.
fn ground(hold: &Hold) -> String {
    let number = hold.judgement.map_or_else(String::new, |number| format!(" {number}"));
    format!("{} {}{number}", hold.type_url.word(), HoldWords::of(hold.reason).ground)
}

fn listed(counts: &BTreeMap<String, usize>) -> String {
    let listed = counts.iter().map(|(what, count)| format!("{count} {what}"));
    listed.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::clock;
    use crate::xds::{Link, Referrer};

    /// Something that waits: `by` nothing, what is held itself, or what another source does not have.
    fn hold(word: &str, judgement: Option<u32>, names: &[&str], by: Option<(&str, &str)>) -> Hold {
        let reason = match (judgement, by) {
            (Some(_), _) => HoldReason::Mass,
            (None, Some(("eds", _))) => HoldReason::Unready,
            (None, _) => HoldReason::Referenced,
        };
        let by = by.map(|(word, name)| Referrer {
            type_url: word.parse().unwrap(),
            name: name.into(),
            link: if reason == HoldReason::Unready {
                Link::Sent
            } else {
                Link::Unsent
            },
        });
        let removal = HeldRemoval {
            since: clock::now(),
            until: (reason != HoldReason::Referenced).then(|| clock::now() + Duration::from_secs(50)),
            by,
            emptied: false,
            wildcard: true,
            extended: None,
        };
        Hold {
            type_url: word.parse().unwrap(),
            reason,
            judgement,
            clock: None,
            removals: names.iter().map(|name| (Name::from(*name), removal.clone())).collect(),
        }
    }

    fn said(action: HoldAction, target: &HoldTarget, before: &[Hold], after: &[Hold]) -> String {
        let mut outcome = Outcome::new(action, clock::now());
        outcome.note(target, before, after);
        outcome.text(WallClock::read())
    }

    /// What went with an order is told apart from what stays, and why.
    #[test]
    fn a_release_says_what_has_gone() {
        let before = [
            hold("lds", Some(1), &["l"], None),
            hold("rds", None, &["r"], Some(("lds", "l"))),
            hold("cds", Some(3), &["a", "b", "c"], None),
        ];
        let judgement = HoldTarget::Hold("cds".parse().unwrap(), HoldReason::Mass, Some(3));
        let after = [
            hold("lds", Some(1), &["l"], None),
            hold("rds", None, &["r"], Some(("lds", "l"))),
            hold("cds", None, &["c"], Some(("rds", "r"))),
        ];
        assert_eq!(
            said(HoldAction::Release, &judgement, &before, &after),
            "2 held removals are passed on: 2 cds of judgement 3\n\
             1 held removal stays: 1 cds by reference, such as c: rds r refers to it, and is held itself\n"
        );
        let listener = HoldTarget::Resource("lds".parse().unwrap(), "l".into());
        let after = [hold("cds", Some(3), &["a", "b", "c"], None)];
        assert_eq!(
            said(HoldAction::Release, &listener, &before, &after),
            "1 held removal is passed on: 1 lds of judgement 1\nwith 1 other, to which nothing else refers: 1 rds\n"
        );
    }

    /// The end that is told is the real one: not the asked one if that is earlier.
    #[test]
    fn an_extension_says_until_when() {
        let before = [hold("lds", Some(1), &["l", "m"], None)];
        let after = [hold("lds", Some(1), &["l"], None)];
        let target = HoldTarget::Hold("lds".parse().unwrap(), HoldReason::Mass, None);
        let until = WallClock::read().short(after[0].until().unwrap());
        assert_eq!(
            said(HoldAction::Extend(Duration::from_secs(1)), &target, &before, &after),
            format!(
                "1 held removal is held at least until {until}: 1 lds of judgement 1\n1 held removal went before the order came\n"
            )
        );
    }

    /// A change that waits is no removal: it is served.
    #[test]
    fn a_change_that_waits_is_told_as_one() {
        let waits = [hold("rds", None, &["web"], Some(("eds", "svc-30")))];
        let target = HoldTarget::Hold("rds".parse().unwrap(), HoldReason::Unready, None);
        assert_eq!(
            said(HoldAction::Release, &target, &waits, &[]),
            "1 waiting change is served: 1 rds for another source\n"
        );
        let until = WallClock::read().short(clock::now() + Duration::from_secs(3600));
        assert_eq!(
            said(HoldAction::Extend(Duration::from_secs(3600)), &target, &waits, &waits),
            format!("1 waiting change may wait until {until}: 1 rds for another source\n")
        );
    }
}
