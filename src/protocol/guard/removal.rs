//! One removal that waits.
//!
//! Owns what was said of the name, and for what it waits. Does not decide when it goes.

use std::sync::Arc;
use std::time::Instant;

use xds::{HeldRemoval, HoldEnd, HoldReason, Kind, Name, Reason, Referrer, Trouble, TypeUrl, Update};

/// One half of a type: what the wildcard covers (`true`), or what was requested by name.
pub(super) type Half = (TypeUrl, bool);

/// A resource in one half of its type.
pub(super) type Item = (Half, Name);

/// Until when a person holds something, and why.
pub(super) type Order = (Instant, Arc<str>);

/// What was said of a name that goes, and for what that waits. It goes when it waits for nothing any more.
#[derive(Debug)]
pub(super) struct Removal {
    /// When it was said first, perhaps to an earlier run of the relay.
    said: Instant,
    /// Empty: an earlier run has held it, and the control plane has not spoken of it since.
    updates: Vec<Update>,
    /// D-03: since when it waits until nothing that directs traffic has come for a while.
    quiet: Option<Instant>,
    judged: Judged,
    reference: Reference,
    /// What a person said of this very name.
    order: Option<Order>,
    /// When the resource expires.
    expires: Option<Instant>,
    /// What a cluster takes its endpoints from.
    endpoints: Option<Name>,
    /// Whether it stays for a while when its cluster has gone.
    lingers: Lingers,
}

/// Whether the endpoints of a removed cluster, which were emptied, stay when the cluster has gone: clients may still use it until they have
/// the routes that leave it, and what they are sent of endpoints does not wait for that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lingers {
    No,
    Yes,
    Until(Instant),
}

/// Whether it is a part of a large loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Judged {
    Not,
    /// The first state that it is a part of is judged soon.
    Undecided,
    /// The judgement with this number holds it.
    By(u32),
}

/// Whether a served resource refers to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reference {
    /// That does not count, because of this.
    Ignored(HoldEnd),
    /// Not known to: it was not looked for, or a removal that something refers to was held by an earlier run (`true`).
    Unknown(bool),
    /// This one does. `true`: the control plane still sends it.
    By(Item, bool),
    /// Until then this listener may: it names a route configuration that is not known yet.
    Perhaps(Item, Instant),
}

impl Removal {
    /// One that waits for the quiet time if `quiet`, for a judgement, and for what refers to it.
    pub(super) const fn new(
        updates: Vec<Update>,
        quiet: bool,
        judged: Judged,
        reference: Reference,
        expires: Option<Instant>,
        now: Instant,
    ) -> Self {
        Self {
            said: now,
            updates,
            quiet: if quiet { Some(now) } else { None },
            judged,
            reference,
            order: None,
            expires,
            endpoints: None,
            lingers: Lingers::No,
        }
    }

    /// The same for endpoints that `follow` their cluster.
    pub(super) fn following(self, follow: bool) -> Self {
        let lingers = if follow { Lingers::Yes } else { Lingers::No };
        Self { lingers, ..self }
    }

    /// Whether it stays for a while when its cluster has gone.
    pub(super) fn lingers(&self) -> bool {
        self.lingers == Lingers::Yes
    }

    /// Its cluster has gone: it stays until then.
    pub(super) const fn linger(&mut self, until: Instant) {
        self.lingers = Lingers::Until(until);
    }

    const fn lingers_until(&self) -> Option<Instant> {
        match self.lingers {
            Lingers::Until(until) => Some(until),
            Lingers::No | Lingers::Yes => None,
        }
    }

    /// One that an earlier run has held, for this judgement or for what refers to it.
    pub(super) fn remembered(earlier: &HeldRemoval, judgement: Option<u32>, until: Option<Instant>) -> Self {
        let order = until.zip(earlier.extended.clone());
        let judged = judgement.map_or(Judged::Not, Judged::By);
        let reference = Reference::Unknown(judgement.is_none());
        Self {
            order,
            ..Self::new(Vec::new(), false, judged, reference, None, earlier.since)
        }
    }

    pub(super) const fn is_remembered(&self) -> bool {
        self.updates.is_empty()
    }

    /// Whether it is not a removal, but an endpoint assignment that has become empty.
    pub(super) fn is_emptied(&self) -> bool {
        matches!(self.updates.first(), Some(Update::Put(..)))
    }

    pub(super) const fn judged(&self) -> Judged {
        self.judged
    }

    /// The number of the judgement that holds it.
    pub(super) const fn judgement(&self) -> Option<u32> {
        match self.judged {
            Judged::By(number) => Some(number),
            Judged::Not | Judged::Undecided => None,
        }
    }

    /// When the quiet time for which it waits began.
    pub(super) const fn quiet_since(&self) -> Option<Instant> {
        self.quiet
    }

    /// What refers to it, and whether the control plane still sends that.
    pub(super) const fn by(&self) -> Option<(&Item, bool)> {
        match &self.reference {
            Reference::By(item, said) => Some((item, *said)),
            Reference::Perhaps(item, _) => Some((item, true)),
            Reference::Ignored(_) | Reference::Unknown(_) => None,
        }
    }

    /// When it was said first.
    pub(super) const fn said(&self) -> Instant {
        self.said
    }

    /// What the cluster takes its endpoints from.
    pub(super) const fn endpoints(&self) -> Option<&Name> {
        self.endpoints.as_ref()
    }

    /// The cluster takes its endpoints from this.
    pub(super) fn set_endpoints(&mut self, endpoints: Option<Name>) {
        self.endpoints = endpoints;
    }

    /// The control plane says it, or says it again.
    pub(super) fn repeat(&mut self, update: Update) {
        self.updates = vec![update];
    }

    /// An error of the name has come. If that removes the name, no rule holds it. G-15: that content is not valid removes the name only if
    /// it is said `together` with the removal.
    pub(super) fn complain(&mut self, update: Update, together: bool) {
        if let Update::Error(_, Some(error)) = &update
            && (together || error.trouble == Trouble::Said)
        {
            self.free(HoldEnd::Gone);
        }
        self.updates.push(update);
    }

    /// Its cluster has returned: it waits for nothing but a quiet time.
    pub(super) const fn hush(&mut self, now: Instant) {
        self.quiet = Some(now);
        self.lingers = Lingers::No;
    }

    /// The quiet time is over.
    pub(super) const fn ripen(&mut self) {
        self.quiet = None;
    }

    pub(super) const fn judge(&mut self, judged: Judged) {
        self.judged = judged;
    }

    /// A person has ended its judgement, and what was said of the name itself with it.
    pub(super) fn acquit(&mut self) {
        self.judged = Judged::Not;
        self.order = None;
    }

    /// Something was found that refers to it (`true`: the control plane still sends that), or it is not known any more what does.
    pub(super) fn refer(&mut self, source: Option<(Item, bool)>) {
        self.reference = source.map_or(Reference::Unknown(false), |(source, said)| Reference::By(source, said));
    }

    /// This listener may refer to it until then, or until the end of an earlier wait of this kind.
    pub(super) fn suspect(&mut self, source: Item, until: Instant) {
        let until = self.suspected_until().unwrap_or(until);
        self.reference = Reference::Perhaps(source, until);
    }

    /// Until when a listener may refer to it.
    pub(super) const fn suspected_until(&self) -> Option<Instant> {
        match self.reference {
            Reference::Perhaps(_, until) => Some(until),
            Reference::Ignored(_) | Reference::Unknown(_) | Reference::By(..) => None,
        }
    }

    /// Nothing but the quiet time holds it any more.
    pub(super) fn free(&mut self, end: HoldEnd) {
        self.acquit();
        self.reference = Reference::Ignored(end);
    }

    /// A person holds it until then.
    pub(super) fn extend(&mut self, order: &Order) {
        self.order = self.order.take().max(Some(order.clone()));
    }

    /// What a person said of it is over, and the control plane has not spoken of it yet.
    pub(super) fn forget_order(&mut self) {
        self.order = None;
    }

    /// Until when a person holds it.
    pub(super) fn ordered_until(&self) -> Option<Instant> {
        self.order.as_ref().map(|(until, _)| *until)
    }

    /// Whether it waits, whatever refers to it.
    pub(super) fn waits(&self, now: Instant) -> bool {
        let held = self.judged != Judged::Not || self.ordered_until().is_some_and(|until| until > now);
        let lingers = self.lingers_until().is_some_and(|until| until > now);
        self.quiet.is_some() || self.is_remembered() || lingers || held && !self.is_expired(now)
    }

    /// Whether what refers to it counts.
    pub(super) fn follows(&self, now: Instant) -> bool {
        !matches!(self.reference, Reference::Ignored(_)) && !self.is_expired(now)
    }

    fn is_expired(&self, now: Instant) -> bool {
        self.expires.is_some_and(|at| at <= now)
    }

    /// When it must be looked at again by itself.
    pub(super) fn alarms(&self) -> impl Iterator<Item = Instant> {
        let times = [
            self.ordered_until(),
            self.suspected_until(),
            self.lingers_until(),
            self.expires,
        ];
        times.into_iter().flatten()
    }

    /// Returns why it goes; `over`: the longest time of a reference is.
    pub(super) fn end(&self, over: bool, now: Instant) -> HoldEnd {
        match &self.reference {
            _ if self.is_expired(now) => HoldEnd::Gone,
            Reference::Ignored(end) => *end,
            _ if over || self.order.is_some() => HoldEnd::Clock,
            Reference::Perhaps(_, until) if *until <= now => HoldEnd::Clock,
            Reference::Unknown(_) | Reference::By(..) | Reference::Perhaps(..) => HoldEnd::Free,
        }
    }

    /// Returns why it is held, as far as operators are told: the quiet time is no hold.
    pub(super) const fn reason(&self) -> Option<(HoldReason, Option<u32>)> {
        let named = match self.reference {
            Reference::By(..) | Reference::Perhaps(..) | Reference::Unknown(true) => true,
            Reference::Ignored(_) | Reference::Unknown(false) => self.order.is_some(),
        };
        match self.judged {
            Judged::By(number) => Some((HoldReason::Mass, Some(number))),
            Judged::Not if named && self.quiet.is_none() => Some((HoldReason::Referenced, None)),
            Judged::Not | Judged::Undecided => None,
        }
    }

    /// Returns it as operators see it; `clock`: when its judgement or the longest time of a reference ends; `order`: what a person said of
    /// its judgement.
    pub(super) fn shown(&self, wildcard: bool, clock: Option<Instant>, order: Option<&Order>) -> HeldRemoval {
        // What refers to it may hold it longer than a person does, and so does the silence of the control plane since the start.
        let refers = matches!(self.reference, Reference::By(..));
        let no_clock = self.is_remembered() && self.order.is_none() || refers && clock.is_none();
        let by = self.by().map(|(((type_url, _), name), said)| Referrer {
            type_url: type_url.clone(),
            name: name.clone(),
            said,
        });
        HeldRemoval {
            since: self.said,
            until: if self.judged == Judged::Not && no_clock {
                None
            } else {
                clock.max(self.ordered_until()).max(self.suspected_until())
            },
            by,
            emptied: self.is_emptied(),
            wildcard,
            extended: self.order.as_ref().max(order).map(|(_, reason)| reason.clone()),
        }
    }

    /// Returns what was said.
    pub(super) fn into_updates(self) -> Vec<Update> {
        self.updates
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
