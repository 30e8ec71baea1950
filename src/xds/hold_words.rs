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
    /// In a list of changes.
    pub title: &'static str,
    /// What the control plane has done, before the names, and what clients get, behind them.
    pub told: [&'static str; 2],
    /// Why, of all together; and where somebody should look.
    pub why: [&'static str; 2],
    /// Behind a type: what holds them.
    pub ground: &'static str,
    /// What becomes of one at its end, and of several.
    pub goes: [&'static str; 2],
    /// What an order to release them does: to one, and to several.
    pub released: [&'static str; 2],
    /// What an order to extend the time does.
    pub extended: [&'static str; 2],
    /// The order that a person is most likely to want, behind `distributary holds`; `{}` stands for the id.
    order: &'static str,
    /// In the log, when they begin to be held, and when others join them.
    begun: [&'static str; 2],
}

const RELEASE: &str = "release {} --reason \"...\"";

const LOST: HoldWords = HoldWords {
    nouns: ["held removal", "held removals"],
    title: "removal held",
    told: ["Removed", "still served"],
    why: ["much was lost at once"; 2],
    ground: "of judgement",
    goes: ["goes", "go"],
    released: ["is passed on", "are passed on"],
    extended: ["is held at least until", "are held at least until"],
    order: "extend {} --for 2h --reason \"...\"",
    begun: [
        "much was lost at once: removed resources are still served; `distributary holds` shows them, and how to let them go",
        "more was lost: these removed resources are still served as well",
    ],
};

const REFERENCED: HoldWords = HoldWords {
    why: [
        "something served refers to them",
        "for over 15 min, something that the control plane still sends has referred to them",
    ],
    ground: "by reference",
    order: RELEASE,
    begun: ["removed resources are still served, because served resources refer to them; `distributary holds` shows them";
        2],
    ..LOST
};

const UNREADY: HoldWords = HoldWords {
    nouns: ["waiting change", "waiting changes"],
    title: "change waits",
    told: ["Changed", "not served yet"],
    why: ["they are changed, and another source does not have what they lead to"; 2],
    ground: "for another source",
    goes: ["is served", "are served"],
    released: ["is served", "are served"],
    extended: ["may wait until", "may wait until"],
    order: RELEASE,
    begun: ["changed resources wait, because another source does not have what they lead to; `distributary holds` shows them";
        2],
};

/// The words for older content, which is no hold: clients use it in the place of what they reject.
pub const OLDER_WORDS: HoldWords = HoldWords {
    nouns: ["older content", "older contents"],
    title: "older content used",
    told: ["Older content of", "used"],
    why: ["the current one is rejected"; 2],
    ground: "in the place of what is rejected",
    goes: ["goes", "go"],
    released: ["released: no further client is sent it, and what it names is not kept"; 2],
    extended: [""; 2],
    order: RELEASE,
    begun: ["older content is used, because the current one is rejected"; 2],
};

impl HoldReason {
    /// Returns its words.
    #[must_use]
    pub const fn words(self) -> &'static HoldWords {
        match self {
            Self::Mass => &LOST,
            Self::Referenced => &REFERENCED,
            Self::Unready => &UNREADY,
        }
    }
}

impl HoldCause {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Lost,
        Self::Ordered,
        Self::Earlier,
        Self::Named,
        Self::NamedByHeld,
        Self::NamedByDraining,
        Self::Perhaps,
        Self::Awaited,
        Self::Away,
    ];

    /// Returns why this is held, which is one of the `holds` of its view.
    #[must_use]
    pub fn of(reason: HoldReason, removal: &HeldRemoval, holds: &[Hold]) -> Self {
        let Some(by) = &removal.by else {
            return match (reason, &removal.extended) {
                (HoldReason::Mass, _) => Self::Lost,
                (_, Some(_)) => Self::Ordered,
                (_, None) => Self::Earlier,
            };
        };
        let held = |hold: &Hold| hold.type_url == by.type_url && hold.removals.contains_key(&by.name);
        match (reason, by.link) {
            (HoldReason::Mass, _) => Self::Lost,
            (HoldReason::Unready, Link::Unsent) => Self::Away,
            (HoldReason::Unready, _) => Self::Awaited,
            (HoldReason::Referenced, Link::Sent) => Self::Named,
            (HoldReason::Referenced, Link::Perhaps) => Self::Perhaps,
            (HoldReason::Referenced, Link::Unsent) if holds.iter().any(held) => Self::NamedByHeld,
            (HoldReason::Referenced, Link::Unsent) => Self::NamedByDraining,
        }
    }

    /// Returns why one of them is held, which `it` is called: `rds public refers to it`.
    #[must_use]
    pub fn why(self, it: &str, by: Option<&Referrer>) -> String {
        let by = by.map_or_else(String::new, Referrer::to_string);
        match self {
            Self::Lost => LOST.why[0].to_owned(),
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
            Self::Named | Self::NamedByHeld | Self::NamedByDraining | Self::Perhaps => {
                format!("once nothing refers to {it}")
            }
            Self::Awaited | Self::Away => "once the source has that".to_owned(),
        }
    }

    /// Returns what ends it earlier than its clock.
    #[must_use]
    pub fn unless(self, it: &str, server: &str) -> String {
        match self {
            Self::Lost => format!(" unless {server} sends {it} again"),
            Self::Ordered => String::new(),
            Self::Earlier
            | Self::Named
            | Self::NamedByHeld
            | Self::NamedByDraining
            | Self::Perhaps
            | Self::Awaited
            | Self::Away => " at the latest".to_owned(),
        }
    }
}

/// Returns the word for one, or for several.
#[must_use]
pub const fn one_or_several([one, several]: [&'static str; 2], number: usize) -> &'static str {
    if number == 1 { one } else { several }
}

impl HoldWords {
    /// Returns so many of them with their noun: `2 held removals`.
    #[must_use]
    pub fn counted(&self, number: usize) -> String {
        format!("{number} {}", one_or_several(self.nouns, number))
    }

    /// Returns the order for a hold, to copy.
    #[must_use]
    pub fn order(&self, id: &str) -> String {
        format!("distributary holds {}", self.order.replace("{}", id))
    }
}

impl HoldChange {
    /// Returns what has happened to some of them, without their number, and whether somebody should look.
    #[must_use]
    pub const fn words(self, reason: HoldReason) -> (&'static str, bool) {
        let mass = matches!(reason, HoldReason::Mass);
        match (self, reason) {
            (Self::Begun, _) => (reason.words().begun[0], mass),
            (Self::Joined, _) => (reason.words().begun[1], mass),
            (Self::Ended(end), HoldReason::Unready) => match end {
                HoldEnd::Free => ("served: the other source has what was missing", false),
                HoldEnd::Clock => (
                    "served without what another source lacks: the time of waiting is over",
                    true,
                ),
                HoldEnd::Person => ("served: a person let it go", false),
                HoldEnd::Settings => ("served: the settings changed", false),
                HoldEnd::Server => ("no longer waits: the control plane says something newer", false),
                HoldEnd::Replaced => ("served: a new resource takes the address or the domain", false),
                HoldEnd::Gone => ("no longer waits: nobody wants it", false),
            },
            (Self::Ended(end), HoldReason::Mass | HoldReason::Referenced) => match end {
                HoldEnd::Server => ("held until it was sent again", false),
                HoldEnd::Replaced => ("no longer held: a new resource takes the address or the domain", false),
                HoldEnd::Free if mass => ("no longer held: not much is lost any more", false),
                HoldEnd::Free => ("no longer held: nothing refers to it", false),
                // A reference that was only possible, because nobody asks for the route, ends by the clock as it should.
                HoldEnd::Clock if mass => ("no longer held as a loss: the time of held removals is over", true),
                HoldEnd::Clock => ("no longer held: its time was over", false),
                HoldEnd::Person => ("no longer held: a person let it go", false),
                HoldEnd::Settings => ("no longer held: the settings changed", false),
                HoldEnd::Gone => ("no longer held: nobody wants it", false),
            },
        }
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

    /// Each cause has its own words. What waits is not told as a removal, and what is removed not as a change.
    #[test]
    fn each_has_its_own_words() {
        let by = Referrer {
            type_url: "rds".parse().unwrap(),
            name: "public\u{202e}".into(),
            link: Link::Sent,
        };
        let whys = HoldCause::ALL.map(|cause| cause.why("it", Some(&by)));
        assert_eq!(whys.iter().collect::<BTreeSet<_>>().len(), whys.len(), "{whys:?}");
        assert!(whys.iter().all(|why| !why.contains('\u{202e}')), "{whys:?}");
        for reason in HoldReason::ALL {
            let ends = HoldEnd::ALL.map(|end| HoldChange::Ended(end).words(reason).0);
            assert_eq!(ends.into_iter().collect::<BTreeSet<_>>().len(), ends.len(), "{ends:?}");
            let words = reason.words();
            let begun = [HoldChange::Begun, HoldChange::Joined].map(|change| change.words(reason).0);
            let all = [words.title, words.nouns[0], words.nouns[1], words.told[0], words.why[0]];
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
        let type_url = || "rds".parse().unwrap();
        let removal = |link: Option<Link>, extended: Option<&str>| HeldRemoval {
            since: std::time::Instant::now(),
            until: None,
            by: link.map(|link| Referrer {
                type_url: type_url(),
                name: "r".into(),
                link,
            }),
            emptied: false,
            wildcard: true,
            extended: extended.map(Into::into),
        };
        let held = [Hold {
            type_url: type_url(),
            reason: HoldReason::Referenced,
            judgement: None,
            removals: [("r".into(), removal(None, None))].into_iter().collect(),
        }];
        let of = |reason, link, extended, holds| HoldCause::of(reason, &removal(link, extended), holds);
        use HoldReason::{Mass, Referenced, Unready};
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
        assert_eq!(found, HoldCause::ALL);
    }
}
