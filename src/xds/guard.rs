// SPDX-License-Identifier: Apache-2.0
//! Removals that are held: the settings, the holds, and what operators order.
//!
//! Owns these values. Does not decide what is held.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use imbl::OrdMap;

use super::{Kind, Name, TypeUrl};
use crate::worded;

/// Which removals are held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GuardSettings {
    /// Whether a removed resource is held as long as a served one refers to it.
    pub references: bool,
    /// Which messages are judged for losses of many resources.
    pub within: Within,
    /// How long such a loss is held.
    pub hold: HoldTimes,
    /// How long a change waits for another source whose server is away; zero: changes do not wait for other sources.
    pub unready: Duration,
}

/// How long losses are held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HoldTimes {
    /// Endpoint assignments and endpoints: a client that keeps them sends requests to addresses that may be gone.
    pub endpoints: Duration,
    /// All other types.
    pub other: Duration,
}

impl HoldTimes {
    /// The same time for all types.
    #[must_use]
    pub const fn all(time: Duration) -> Self {
        Self {
            endpoints: time,
            other: time,
        }
    }

    /// Returns the time for resources of this kind.
    #[must_use]
    pub const fn of(&self, kind: Kind) -> Duration {
        if kind.is_endpoints() {
            self.endpoints
        } else {
            self.other
        }
    }
}

/// Which messages of a control plane are judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Within {
    /// The first whole state of each stream.
    FirstState,
    /// Every message.
    Always,
    /// None.
    Never,
}

impl Default for GuardSettings {
    fn default() -> Self {
        Self {
            references: true,
            within: Within::FirstState,
            hold: HoldTimes {
                endpoints: Duration::from_secs(2 * 60),
                other: Duration::from_secs(5 * 60),
            },
            unready: Duration::from_secs(60),
        }
    }
}

impl GuardSettings {
    /// Settings with which nothing is held.
    pub const OFF: Self = Self {
        references: false,
        within: Within::Never,
        hold: HoldTimes::all(Duration::ZERO),
        unready: Duration::ZERO,
    };
}

/// The settings of a relay, and those of classes that have their own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Guards {
    /// For all classes that have none of their own.
    pub all: GuardSettings,
    /// By the position of the class's rule.
    pub classes: Vec<Option<GuardSettings>>,
}

impl Guards {
    /// Returns the settings for the class of this rule.
    #[must_use]
    pub fn of(&self, rule: Option<usize>) -> GuardSettings {
        let own = rule.and_then(|at| *self.classes.get(at)?);
        own.unwrap_or(self.all)
    }
}

worded! {
/// Why a removal is held, or a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HoldReason {
    /// Too much was lost at once.
    Mass = "mass",
    /// A served resource refers to it.
    Referenced = "referenced",
    /// It is a change, and another source does not have yet what it leads to (D-12).
    Unready = "unready",
}
}

/// The removals of one type of a view that one judgement holds, or all that served resources hold; or its changes that are not ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hold {
    /// The type.
    pub type_url: TypeUrl,
    /// Why they are held.
    pub reason: HoldReason,
    /// The number of the judgement; `None` where a served resource holds them.
    pub judgement: Option<u32>,
    /// The judgement's clock, but for what a person has said.
    pub clock: Option<HoldClock>,
    /// The held removals.
    pub removals: OrdMap<Name, HeldRemoval>,
}

/// How long a judgement holds still.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HoldClock {
    /// How much of its time was left when it began to run last, or stood.
    pub left: Duration,
    /// Since when, or from when on, it runs; `None`: it stands.
    pub runs: Option<Instant>,
    /// After how many absences of the control plane it was given more time.
    pub absences: u8,
}

/// One held removal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldRemoval {
    /// When the control plane said it.
    pub since: Instant,
    /// When it is passed on at the latest; `None`: there is no clock.
    pub until: Option<Instant>,
    /// What refers to the resource; or what a change waits for.
    pub by: Option<Referrer>,
    /// Whether the resource is not removed, but an endpoint assignment that has become empty.
    pub emptied: bool,
    /// Whether the wildcard covers the resource; if not, it was requested by name.
    pub wildcard: bool,
    /// Until when a person holds it, and why.
    pub extended: Option<(Instant, Arc<str>)>,
}

/// A served resource that refers to a removed one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Referrer {
    /// Its type.
    pub type_url: TypeUrl,
    /// Its name.
    pub name: Name,
    /// In which way it does.
    pub link: Link,
}

/// In which way a resource refers to a removed one; of what a change leads to, whether its source is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// The control plane still sends it; the source is there.
    Sent,
    /// It is removed itself and held, or only a client that drains still uses it; the source is away.
    Unsent,
    /// It may: it names a route configuration that is not known yet.
    Perhaps,
}

/// How long a removal may wait for a resource that the control plane still sends until somebody should look.
const LONG: Duration = Duration::from_secs(15 * 60);

impl Hold {
    /// When the first of its removals was said.
    #[must_use]
    pub fn since(&self) -> Option<Instant> {
        self.removals.values().map(|removal| removal.since).min()
    }

    /// When the last of its removals is passed on; `None`: there is no clock.
    #[must_use]
    pub fn until(&self) -> Option<Instant> {
        let untils: Option<Vec<Instant>> = self.removals.values().map(|removal| removal.until).collect();
        untils?.into_iter().max()
    }

    /// Whether somebody should look. A judgement means that much was lost; of the others, see [`HeldRemoval::is_overdue`].
    #[must_use]
    pub fn is_trouble(&self, now: Instant) -> bool {
        match self.reason {
            HoldReason::Mass => true,
            HoldReason::Referenced => self.removals.values().any(|removal| removal.is_overdue(now)),
            HoldReason::Unready => false,
        }
    }
}

impl HoldClock {
    /// A clock with this much left, which stands.
    #[must_use]
    pub const fn standing(left: Duration) -> Self {
        Self {
            left,
            runs: None,
            absences: 0,
        }
    }

    /// Returns how much of its time is left.
    #[must_use]
    pub fn left(&self, now: Instant) -> Duration {
        let ran = self.runs.map(|since| now.saturating_duration_since(since));
        self.left.saturating_sub(ran.unwrap_or_default())
    }
}

impl HeldRemoval {
    /// Whether somebody should look at what refers to it. A reference alone is the usual course of a rollout, unless the control plane
    /// goes on sending what refers to a resource that it has removed long ago.
    #[must_use]
    pub fn is_overdue(&self, now: Instant) -> bool {
        let is_sent = self.by.as_ref().is_some_and(|by| by.link == Link::Sent);
        is_sent && now.saturating_duration_since(self.since) >= LONG
    }
}

/// What has happened to a hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HoldEvent {
    /// The type.
    pub type_url: TypeUrl,
    /// Why the removals are or were held.
    pub reason: HoldReason,
    /// The number of the judgement, if one holds or held them.
    pub judgement: Option<u32>,
    /// What has happened.
    pub change: HoldChange,
    /// To how many removals.
    pub removals: usize,
    /// One of their names.
    pub name: Name,
}

/// What can happen to removals of a hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum HoldChange {
    /// The hold begins with them.
    Begun,
    /// They join it.
    Joined,
    /// It does not hold them any more.
    Ended(HoldEnd),
}

worded! {
/// What ended the hold of a removal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HoldEnd {
    /// The control plane sent the resource again.
    Server = "server",
    /// A new resource takes the address or the domain.
    Replaced = "replaced",
    /// Nothing refers to the resource any more, or what a change leads to is there.
    Free = "free",
    /// The time was over.
    Clock = "clock",
    /// A person released it.
    Person = "person",
    /// The settings have changed.
    Settings = "settings",
    /// Nobody wants the resource any more, or its time to live is over.
    Gone = "gone",
}
}

/// What a person orders for held removals.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HoldOrder {
    /// Which removals.
    pub target: HoldTarget,
    /// What is done with them.
    pub action: HoldAction,
    /// The person's reason.
    pub reason: Arc<str>,
}

/// Which held removals an order is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HoldTarget {
    /// What one judgement holds, or every judgement of the type if no number is given; or what served resources hold.
    Hold(TypeUrl, HoldReason, Option<u32>),
    /// One resource.
    Resource(TypeUrl, Name),
}

/// What is done with held removals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HoldAction {
    /// They are held for so long from now on.
    Extend(Duration),
    /// They are passed on at once.
    Release,
}

impl HoldTarget {
    /// Whether the order is for this resource, which `hold` has.
    #[must_use]
    pub fn is(&self, hold: &Hold, name: &Name) -> bool {
        match self {
            Self::Hold(type_url, reason, only) => {
                let number = only.is_none_or(|only| hold.judgement == Some(only));
                *type_url == hold.type_url && *reason == hold.reason && number
            }
            Self::Resource(type_url, only) => *type_url == hold.type_url && only == name,
        }
    }
}

impl fmt::Display for HoldReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}
