//! What an order for held removals has done.
//!
//! Owns the comparison of what was held before with what is held afterwards, and the words for it. Gives no order.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Instant;

use super::shown::{counted, referring};
use crate::clock::WallClock;
use crate::xds::{HeldRemoval, Hold, HoldAction, HoldTarget, Name, TypeUrl, printable};

/// What became of the removals that an order was for, over all views.
#[derive(Debug)]
pub(super) struct Outcome {
    action: HoldAction,
    given: Instant,
    /// How many are not held any more, by what held them.
    gone: BTreeMap<String, usize>,
    /// How many others are not, which only a reference had held, by type.
    along: BTreeMap<String, usize>,
    /// What holds one that stays, in words, and how many there are.
    kept: BTreeMap<String, usize>,
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
                match (left, target.is(&hold.type_url, hold.judgement, name)) {
                    (Some((hold, removal)), true) => self.keep(hold, name, removal, after),
                    (None, true) => *self.gone.entry(ground(hold)).or_default() += 1,
                    (None, false) if hold.judgement.is_none() => *self.along.entry(word.to_owned()).or_default() += 1,
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
                format!("{}, such as {one}, {}", ground(hold), referring(by, after))
            }
            (HoldAction::Release, None) | (HoldAction::Extend(_), _) => ground(hold),
        };
        *self.kept.entry(by).or_default() += 1;
    }

    /// Returns it in sentences.
    pub(super) fn text(&self, clock: WallClock) -> String {
        let (gone, kept) = (self.gone.values().sum::<usize>(), self.kept.values().sum::<usize>());
        let mut text = String::new();
        // Writing to memory cannot fail.
        match self.action {
            HoldAction::Extend(_) => {
                if let Some(until) = self.until {
                    let (what, are) = (counted(kept, "held removal"), are(kept));
                    let until = clock.short(until);
                    let _ = writeln!(text, "{what} {are} held at least until {until}: {}", listed(&self.kept));
                }
                if gone > 0 {
                    let _ = writeln!(text, "{} went before the order came", counted(gone, "removal"));
                }
            }
            HoldAction::Release => {
                let what = counted(gone, "held removal");
                let _ = writeln!(text, "{what} {} passed on: {}", are(gone), listed(&self.gone));
                if !self.along.is_empty() {
                    let others = self.along.values().sum();
                    let _ = writeln!(
                        text,
                        "with {}, to which nothing else refers: {}",
                        counted(others, "other"),
                        listed(&self.along)
                    );
                }
                if kept > 0 {
                    let stay = if kept == 1 { "stays" } else { "stay" };
                    let _ = writeln!(text, "{kept} {stay}: {}", listed(&self.kept));
                }
            }
        }
        text
    }
}

fn find<'a>(holds: &'a [Hold], type_url: &TypeUrl, name: &Name) -> Option<(&'a Hold, &'a HeldRemoval)> {
    let mut of_type = holds.iter().filter(|hold| hold.type_url == *type_url);
    of_type.find_map(|hold| Some((hold, hold.removals.get(name)?)))
}

/// Returns what holds something: `cds of judgement 3`, or `cds by reference`.
fn ground(hold: &Hold) -> String {
    let word = hold.type_url.word();
    hold.judgement.map_or_else(
        || format!("{word} by reference"),
        |number| format!("{word} of judgement {number}"),
    )
}

fn listed(counts: &BTreeMap<String, usize>) -> String {
    let listed = counts.iter().map(|(what, count)| format!("{count} {what}"));
    listed.collect::<Vec<_>>().join(", ")
}

const fn are(number: usize) -> &'static str {
    if number == 1 { "is" } else { "are" }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::clock;
    use crate::xds::{HoldReason, Referrer};

    fn hold(word: &str, judgement: Option<u32>, names: &[&str], by: Option<(&str, &str, bool)>) -> Hold {
        let by = by.map(|(word, name, said)| Referrer {
            type_url: word.parse().unwrap(),
            name: name.into(),
            said,
        });
        let removal = HeldRemoval {
            since: clock::now(),
            until: judgement.map(|_| clock::now() + Duration::from_secs(50)),
            by,
            emptied: false,
            wildcard: true,
            extended: None,
        };
        Hold {
            type_url: word.parse().unwrap(),
            reason: judgement.map_or(HoldReason::Referenced, |_| HoldReason::Mass),
            judgement,
            removals: names.iter().map(|name| ((*name).into(), removal.clone())).collect(),
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
            hold("rds", None, &["r"], Some(("lds", "l", false))),
            hold("cds", Some(3), &["a", "b", "c"], None),
        ];
        let judgement = HoldTarget::Hold("cds".parse().unwrap(), HoldReason::Mass, Some(3));
        let after = [
            hold("lds", Some(1), &["l"], None),
            hold("rds", None, &["r"], Some(("lds", "l", false))),
            hold("cds", None, &["c"], Some(("rds", "r", false))),
        ];
        assert_eq!(
            said(HoldAction::Release, &judgement, &before, &after),
            "2 held removals are passed on: 2 cds of judgement 3\n\
             1 stays: 1 cds by reference, such as c, to which rds r refers, which is held itself\n"
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
                "1 held removal is held at least until {until}: 1 lds of judgement 1\n1 removal went before the order came\n"
            )
        );
    }
}
