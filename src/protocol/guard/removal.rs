//! One removal that waits.
//!
//! Owns what was said of the name, and for which rules it waits. Does not decide when it goes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use xds::{Cut, HeldRemoval, HoldReason, Kind, Known, Name, Reason, State, Trouble, TypeUrl, Update};

/// One half of a type: what the wildcard covers (`true`), or what was requested by name.
pub(super) type Half = (TypeUrl, bool);

/// The waiting removals of one half of a type.
pub(super) type Removals = BTreeMap<Name, Removal>;

/// What was said of a name that goes.
#[derive(Debug)]
pub(super) struct Removal {
    pub(super) since: Instant,
    /// When it was said first, perhaps to an earlier run of the relay.
    pub(super) said: Instant,
    /// An earlier run has held it because too much was lost: that is not judged anew.
    pub(super) remembered: bool,
    pub(super) updates: Vec<Update>,
    /// D-03: it waits until nothing that directs traffic has come for a while.
    pub(super) quiet: bool,
    /// It waits because too much was lost, until then.
    pub(super) mass: Option<Instant>,
    /// That time is over.
    pub(super) mass_over: bool,
    /// It waits because this refers to it.
    pub(super) by: Option<(TypeUrl, Name)>,
    /// When it goes although something refers to it.
    pub(super) at_most: Option<Instant>,
    /// When the resource expires.
    pub(super) expires: Option<Instant>,
    /// A person has released it.
    pub(super) released: bool,
    /// Until when a person holds it longer, and why.
    pub(super) extended: Option<(Instant, Arc<str>)>,
    /// E-09: the control plane has reported an error together with it. Such a removal is never held.
    pub(super) failed: bool,
    /// No rule but the quiet time is for it: another relay has said it.
    pub(super) relayed: bool,
}

impl Removal {
    pub(super) fn new(update: Update, quiet: bool, relayed: bool, expires: Option<Instant>, now: Instant) -> Self {
        Self {
            since: now,
            said: now,
            remembered: false,
            updates: vec![update],
            quiet,
            mass: None,
            mass_over: false,
            by: None,
            at_most: None,
            expires,
            released: false,
            extended: None,
            failed: false,
            relayed,
        }
    }

    /// An earlier run has held it: its times go on.
    pub(super) fn remember(&mut self, reason: HoldReason, earlier: &HeldRemoval) {
        self.said = earlier.since.min(self.said);
        let reason_given = earlier.extended.clone();
        self.extended = earlier.until.zip(reason_given);
        if reason == HoldReason::Mass {
            self.remembered = true;
            self.mass = earlier.until;
        }
    }

    /// Whether it is not a removal, but an endpoint assignment that has become empty.
    pub(super) fn is_emptied(&self) -> bool {
        matches!(self.updates.first(), Some(Update::Put(..)))
    }

    /// The control plane says it again.
    pub(super) fn repeat(&mut self, updates: Vec<Update>) {
        (self.updates, self.failed) = (updates, false);
    }

    /// An error of the name has come. G-15: that content is not valid, removes the name only if it is said `together` with the removal.
    pub(super) fn complain(&mut self, update: Update, together: bool) {
        if let Update::Error(_, Some(error)) = &update {
            self.failed |= together || error.trouble == Trouble::Said;
        }
        self.updates.push(update);
    }

    /// Whether no rule but the quiet time counts any more.
    pub(super) fn is_free(&self, now: Instant) -> bool {
        self.released || self.relayed || self.failed || self.expires.is_some_and(|at| at <= now)
    }

    /// Whether it waits whatever refers to it.
    pub(super) fn waits(&self, now: Instant) -> bool {
        self.quiet || self.is_mass(now) && !self.is_free(now)
    }

    /// Whether what refers to it counts.
    pub(super) fn follows(&self, now: Instant) -> bool {
        let over = self.at_most.is_some_and(|at| at <= now);
        !over && !self.is_free(now) && !self.is_emptied()
    }

    /// Whether it waits because too much was lost.
    pub(super) fn is_mass(&self, now: Instant) -> bool {
        !self.mass_over && self.mass.is_some_and(|until| until > now)
    }

    /// Begins to wait because too much was lost. A time that is over does not begin again.
    pub(super) fn begin_mass(&mut self, until: Instant) {
        self.mass.get_or_insert(until);
    }

    /// Why it is held, as far as operators are told: the quiet time is no hold.
    pub(super) fn reason(&self) -> Option<HoldReason> {
        let mass = self.mass.filter(|_| !self.mass_over);
        match (self.quiet, mass, &self.by) {
            (true, ..) | (false, None, None) => None,
            (false, Some(_), _) => Some(HoldReason::Mass),
            (false, None, Some(_)) => Some(HoldReason::Referenced),
        }
    }

    /// When its next clock ends.
    pub(super) fn clock(&self) -> Option<Instant> {
        let held = match self.reason() {
            Some(HoldReason::Mass) => self.mass,
            Some(HoldReason::Referenced) => self.at_most,
            None => None,
        };
        let expires = self.expires.filter(|_| !self.quiet);
        held.into_iter().chain(expires).min()
    }
}

/// Whether the control plane says that a name does not exist, or that the wildcard or a collection does not have it any more.
/// K-16: that it does not answer takes nothing from anybody. The end of a time to live never waits.
pub(super) fn removes(update: &Update) -> bool {
    match update {
        Update::Absent(_, reason) => *reason == Reason::Said,
        Update::Forget(_) => true,
        Update::Put(..) | Update::Whole(_) | Update::Error(..) => false,
    }
}

/// Whether removals of this kind wait for routes (D-03).
pub(super) const fn is_quiet(kind: Kind) -> bool {
    kind.gates() || matches!(kind, Kind::Lds)
}

/// Drops what is held of the name that this update is about. Returns what must come before the update, because a name goes together
/// with what replaces it (K-20), and why the dropped removals were held.
pub(super) fn overtaken(names: &mut Removals, update: &Update) -> (Vec<Update>, Vec<HoldReason>) {
    let (mut before, mut reasons) = (Vec::new(), Vec::new());
    if names.is_empty() {
        return (before, reasons);
    }
    let mut take = |name: &Name| {
        let removal = names.remove(name)?;
        reasons.extend(removal.reason());
        Some(removal)
    };
    match update {
        Update::Put(resource, _) => {
            take(resource.name());
            for alias in resource.aliases() {
                before.extend(take(alias).into_iter().flat_map(|removal| removal.updates));
            }
        }
        Update::Absent(name, _) | Update::Forget(name) => drop(take(name)),
        Update::Whole(_) | Update::Error(..) => {}
    }
    (before, reasons)
}

pub(super) fn half_of<'a>(cut: &'a Cut, (type_url, wildcard): &Half) -> Option<&'a State> {
    let slot = cut.slot(type_url)?;
    if *wildcard {
        slot.wildcard.as_deref()
    } else {
        Some(&slot.named)
    }
}

pub(super) fn is_present(state: &State, name: &Name) -> bool {
    matches!(state.entries().get(name), Some(Known::Present(_)))
}
