// SPDX-License-Identifier: Apache-2.0
//! What people are told of what is held: the one table of words, for the page, the commands, the log, `/holds` and `/events`.
//!
//! Owns the words. Does not know who reads them, and composes no list.

use std::fmt;

use super::guard::{HeldRemoval, Hold, HoldChange, HoldEnd, HoldReason, Link, Referrer};
use super::printable;

/// Why one removal or change is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum HoldCause {
    /// It is a part of a large loss.
    Lost,
    /// A person holds it.
    Ordered,
    /// Something that an earlier run of the relay knew has referred to it.
    Earlier,
    /// Something that the control plane still sends refers to it.
    Named,
    /// The same by something that is held itself.
    NamedByHeld,
    /// The same by something that only clients that drain still use.
    NamedByDraining,
    /// A listener may refer to it.
    Perhaps,
    /// A change leads to something that another source does not have.
    Awaited,
    /// The same, while the server of that source is away.
    Away,
}

/// The words for one reason.
#[derive(Debug)]
pub struct HoldWords {
    /// What one of them is called, and several.
    pub nouns: [&'static str; 2],
    /// What the control plane has done, before the names, and what clients get, behind them.
    pub told: [&'static str; 2],
    /// Why, of all together.
    pub why: &'static str,
    /// Behind a type: what holds them.
    pub ground: &'static str,
    /// What becomes of one at its end, or by an order to release it, and of several.
    pub released: [&'static str; 2],
    /// What an order to extend the time does.
    pub extended: [&'static str; 2],
    /// In the log, when they begin to be held, and when others join them.
    begun: [&'static str; 2],
}

const LOST: HoldWords = HoldWords {
    nouns: ["held removal", "held removals"],
    told: ["Removed", "still served"],
    why: "much was lost at once",
    ground: "of judgement",
    released: ["is passed on", "are passed on"],
    extended: ["is held at least until", "are held at least until"],
    begun: [
        "much was lost at once: removed resources are still served; `distributary holds` shows them, and how to let them go",
        "more was lost: these removed resources are still served as well",
    ],
};

const REFERENCED: HoldWords = HoldWords {
    why: "something served refers to them",
    ground: "by reference",
    begun: ["removed resources are still served, because served resources refer to them; `distributary holds` shows them";
        2],
    ..LOST
};

const UNREADY: HoldWords = HoldWords {
    nouns: ["waiting change", "waiting changes"],
    told: ["Changed", "not served yet"],
    why: "they are changed, and another source does not have what they lead to",
    ground: "for another source",
    released: ["is served", "are served"],
    extended: ["may wait until", "may wait until"],
    begun: ["changed resources wait, because another source does not have what they lead to; `distributary holds` shows them";
        2],
};

/// The words for older content, which is no hold: clients use it in the place of what they reject.
pub const OLDER_WORDS: HoldWords = HoldWords {
    nouns: ["older content", "older contents"],
    told: ["Older content of", "used"],
    why: "the current one is rejected",
    released: ["released: no further client is sent it, and what it names is not kept"; 2],
    ..REFERENCED
};

impl HoldCause {
    /// Returns why this is held, which is one of the `holds` of its view.
    #[must_use]
    pub fn of(reason: HoldReason, removal: &HeldRemoval, holds: &[Hold]) -> Self {
        let held = |by: &Referrer| {
            let mut of_type = holds.iter().filter(|hold| hold.type_url == by.type_url);
            of_type.any(|hold| hold.removals.contains_key(&by.name))
        };
        match (reason, &removal.by, &removal.extended) {
            (HoldReason::Mass, ..) => Self::Lost,
            (_, None, Some(_)) => Self::Ordered,
            (_, None, None) => Self::Earlier,
            (HoldReason::Unready, Some(by), _) if by.link == Link::Unsent => Self::Away,
            (HoldReason::Unready, Some(_), _) => Self::Awaited,
            (HoldReason::Referenced, Some(by), _) => match by.link {
                Link::Sent => Self::Named,
                Link::Perhaps => Self::Perhaps,
                Link::Unsent if held(by) => Self::NamedByHeld,
                Link::Unsent => Self::NamedByDraining,
            },
        }
    }

    /// Returns why one of them is held, which `it` is called: `rds public refers to it`.
    #[must_use]
    pub fn why(self, it: &str, by: Option<&Referrer>) -> String {
        let by = by.map_or_else(String::new, Referrer::to_string);
        match self {
            Self::Lost => LOST.why.to_owned(),
            Self::Ordered => format!("a person holds {it}"),
            Self::Earlier => format!("something has referred to {it} before the relay began"),
            Self::Named => format!("{by} refers to {it}"),
            Self::NamedByHeld => format!("{by} refers to {it}, and is held itself"),
            Self::NamedByDraining => format!("{by} refers to {it}, and only clients that drain still use that"),
            Self::Perhaps => format!("{by} may refer to {it}, for its route is not known yet"),
            Self::Awaited => format!("{it} leads to {by}, which the other source does not have yet"),
            Self::Away => format!("{it} leads to {by}, whose source is away"),
        }
    }

    /// Returns when what this `server` has said of `it` goes, where no clock runs: `once nothing refers to it`.
    #[must_use]
    pub fn once(self, it: &str, server: &str) -> String {
        match self {
            Self::Lost | Self::Earlier => format!("some time after {server} has said what it has"),
            Self::Ordered => format!("once a person releases {it}"),
            Self::Awaited | Self::Away => "once the source has that".to_owned(),
            Self::Named | Self::NamedByHeld | Self::NamedByDraining | Self::Perhaps => {
                format!("once nothing refers to {it}")
            }
        }
    }

    /// Returns what ends it earlier than its clock.
    #[must_use]
    pub fn unless(self, it: &str, server: &str) -> String {
        if self == Self::Lost {
            return format!(" unless {server} sends {it} again");
        }
        let person = self == Self::Ordered;
        if person {
            String::new()
        } else {
            " at the latest".to_owned()
        }
    }
}

/// Returns the word for one, or for several.
#[must_use]
pub const fn one_or_several([one, several]: [&'static str; 2], number: usize) -> &'static str {
    if number == 1 { one } else { several }
}

impl HoldWords {
    /// Returns the words for this reason.
    #[must_use]
    pub const fn of(reason: HoldReason) -> &'static Self {
        match reason {
            HoldReason::Mass => &LOST,
            HoldReason::Referenced => &REFERENCED,
            HoldReason::Unready => &UNREADY,
        }
    }

    /// Returns what has happened to some of them, without their number, and whether somebody should look.
    #[must_use]
    pub const fn happened(change: HoldChange, reason: HoldReason) -> (&'static str, bool) {
        let mass = matches!(reason, HoldReason::Mass);
        let [begun, joined] = Self::of(reason).begun;
        let end = match change {
            HoldChange::Begun => return (begun, mass),
            HoldChange::Joined => return (joined, mass),
            HoldChange::Ended(end) => end,
        };
        let words = match (end, matches!(reason, HoldReason::Unready)) {
            (HoldEnd::Free, true) => "served: the other source has what was missing",
            (HoldEnd::Clock, true) => "served without what another source lacks: the time of waiting is over",
            (HoldEnd::Person, true) => "served: a person let it go",
            (HoldEnd::Settings, true) => "served: the settings changed",
            (HoldEnd::Server, true) => "no longer waits: the control plane says something newer",
            (HoldEnd::Replaced, true) => "served: a new resource takes the address or the domain",
            (HoldEnd::Gone, true) => "no longer waits: nobody wants it",
            (HoldEnd::Free, false) if mass => "no longer held: not much is lost any more",
            (HoldEnd::Free, false) => "no longer held: nothing refers to it",
            (HoldEnd::Clock, false) if mass => "no longer held as a loss: the time of held removals is over",
            (HoldEnd::Clock, false) => "no longer held: its time was over",
            (HoldEnd::Person, false) => "no longer held: a person let it go",
            (HoldEnd::Settings, false) => "no longer held: the settings changed",
            (HoldEnd::Server, false) => "held until it was sent again",
            (HoldEnd::Replaced, false) => "no longer held: a new resource takes the address or the domain",
            (HoldEnd::Gone, false) => "no longer held: nobody wants it",
        };
        // A reference that was only possible, because nobody asks for the route, ends by the clock as it should.
        (
            words,
            matches!(end, HoldEnd::Clock) && !matches!(reason, HoldReason::Referenced),
        )
    }

    /// Returns so many of them with their noun: `2 held removals`.
    #[must_use]
    pub fn counted(&self, number: usize) -> String {
        format!("{number} {}", one_or_several(self.nouns, number))
    }

    /// Returns the order for a hold that a person is most likely to want, to copy.
    #[must_use]
    pub fn order(&self, id: &str) -> String {
        let [what, time] = if self.ground == LOST.ground {
            ["extend", " --for 2h"]
        } else {
            ["release", ""]
        };
        format!("distributary holds {what} {id}{time} --reason \"...\"")
    }
}

impl fmt::Display for Referrer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.type_url.word(), printable(self.name.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::Name;

    const ALL: [HoldCause; 9] = [
        HoldCause::Lost,
        HoldCause::Ordered,
        HoldCause::Earlier,
        HoldCause::Named,
        HoldCause::NamedByHeld,
        HoldCause::NamedByDraining,
        HoldCause::Perhaps,
        HoldCause::Awaited,
        HoldCause::Away,
    ];

    /// Each cause has its own words. What waits is not told as a removal, and what is removed not as a change.
    #[test]
    fn each_has_its_own_words() {
        let by = Referrer {
            type_url: "rds".parse().unwrap(),
            name: "public\u{202e}".into(),
            link: Link::Sent,
        };
        let whys = ALL.map(|cause| cause.why("it", Some(&by)));
        assert_eq!(whys.iter().collect::<BTreeSet<_>>().len(), whys.len(), "{whys:?}");
        assert!(whys.iter().all(|why| !why.contains('\u{202e}')), "{whys:?}");
        for reason in HoldReason::ALL {
            let ends = HoldEnd::ALL.map(|end| HoldWords::happened(HoldChange::Ended(end), reason).0);
            assert_eq!(ends.into_iter().collect::<BTreeSet<_>>().len(), ends.len(), "{ends:?}");
            let words = HoldWords::of(reason);
            let begun = [HoldChange::Begun, HoldChange::Joined].map(|change| HoldWords::happened(change, reason).0);
            let all = [words.nouns[0], words.nouns[1], words.told[0], words.why];
            for text in all.iter().chain(&ends).chain(&begun) {
                let waits = reason == HoldReason::Unready;
                assert!(
                    !text.to_lowercase().contains(if waits { "remov" } else { "chang" })
                        || text.ends_with("settings changed")
                );
            }
        }
    }

    /// What a hold is called follows from what is known of it.
    #[test]
    fn each_cause_is_found() {
        use HoldReason::{Mass, Referenced, Unready};

        let type_url = || "rds".parse().unwrap();
        #[expect(clippy::disallowed_methods, reason = "any instant will do")]
        let now = std::time::Instant::now();
        let removal = |link: Option<Link>, extended: Option<&str>| HeldRemoval {
            since: now,
            until: None,
            by: link.map(|link| Referrer {
                type_url: type_url(),
                name: "r".into(),
                link,
            }),
            emptied: false,
            wildcard: true,
            extended: extended.map(|why| (now, why.into())),
        };
        let held = [Hold {
            type_url: type_url(),
            reason: Referenced,
            judgement: None,
            clock: None,
            removals: [(Name::from("r"), removal(None, None))].into_iter().collect(),
        }];
        let of = |reason, link, extended, holds| HoldCause::of(reason, &removal(link, extended), holds);
        let found = [
            of(Mass, None, Some("x"), &[]),
            of(Referenced, None, Some("x"), &[]),
            of(Referenced, None, None, &[]),
            of(Referenced, Some(Link::Sent), None, &held),
            of(Referenced, Some(Link::Unsent), None, &held),
            of(Referenced, Some(Link::Unsent), None, &[]),
            of(Referenced, Some(Link::Perhaps), None, &[]),
            of(Unready, Some(Link::Sent), Some("x"), &[]),
            of(Unready, Some(Link::Unsent), None, &[]),
        ];
        assert_eq!(found, ALL);
    }
}
