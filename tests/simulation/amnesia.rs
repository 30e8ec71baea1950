//! Control planes that forget: in a moment they have a half, nothing, older content, other names of clusters or no endpoints, most of
//! them because they restart. They repair that early, late or never, and forget again. Operators change the rules, extend and release.
//!
//! Owns what is forgotten and when it is there again. Does not know what the relay makes of it.

use std::time::Duration;

use xds::{GuardSettings, Guards, HoldAction, HoldOrder, HoldTarget, MassHold, ReferenceHold, Within};

use super::body::Type;
use super::event::Event;
use super::rng::Rng;
use super::tally::Broken;
use super::truth::{Key, Step, Truth};
use super::upstream::GUARD;
use super::world::World;

impl Truth {
    /// Forgets a part, or all.
    fn forget(&mut self, rng: &mut Rng) {
        let drop = |kind: Type, name: String| match kind {
            Type::Cds => Step::Forsake(name),
            Type::Eds | Type::Leds | Type::Lds | Type::Rds | Type::Sds | Type::Odd => Step::Drop(kind, name),
        };
        let loss = rng.below(6);
        let keys: Vec<Key> = self.keys().cloned().collect();
        for (kind, name) in keys {
            let steps = match loss {
                0 => vec![drop(kind, name)],
                1 | 2 if rng.chance(50) => vec![drop(kind, name)],
                3 => vec![Step::Rollback(kind, name)],
                4 if kind == Type::Cds && !name.starts_with("xdstp:") => {
                    vec![Step::AddCluster(format!("new-{name}")), Step::Forsake(name)]
                }
                5 if kind == Type::Eds => vec![Step::Empty(name)],
                _ => Vec::new(),
            };
            for step in steps {
                self.apply(&step, rng);
            }
        }
    }
}

impl World {
    /// Control planes begin to forget.
    pub(crate) fn stir_amnesia(&mut self) {
        if !self.course.besides.amnesia {
            return;
        }
        for zone in 0..self.zones.len() {
            self.course.soon(500, 20_000, Event::Forget(zone));
        }
        self.course.soon(0, 20_000, Event::Guard);
    }

    /// A control plane forgets something, and will know it again or not.
    pub(crate) fn forget(&mut self, zone: usize) -> Result<(), Broken> {
        let here = &mut self.zones[zone];
        if self.course.calm || here.wire.is_none() && here.source.is_none() {
            return Ok(());
        }
        let before = here.truth.clone();
        here.truth.forget(&mut self.course.rng);
        let pause = match self.course.rng.below(4) {
            0 => self.course.rng.millis(0, 300),
            1 => self.course.rng.millis(300, 4000),
            _ => self.course.rng.millis(4000, 40_000),
        };
        let next = match self.course.rng.chance(70) {
            true => Event::Recall(zone, Box::new(before)),
            false => Event::Forget(zone),
        };
        self.course.after(pause, next);
        self.course.log(|| format!("origin {zone}: forgets"));
        self.restart_origin(zone)
    }

    /// A control plane knows again what it had.
    pub(crate) fn recall(&mut self, zone: usize, before: &Truth) -> Result<(), Broken> {
        if self.course.calm {
            return Ok(());
        }
        self.course.soon(200, 20_000, Event::Forget(zone));
        self.course.log(|| format!("origin {zone}: remembers"));
        self.zones[zone].truth.adopt(before);
        self.restart_origin(zone)
    }

    /// A control plane restarts, or says in the middle of its life what has changed.
    fn restart_origin(&mut self, zone: usize) -> Result<(), Broken> {
        self.course.deliver(Event::Utter(zone, false));
        match self.course.rng.chance(70) {
            true => self.sever(zone),
            false => Ok(()),
        }
    }

    /// The operator changes the rules by which removals are held, or orders something.
    pub(crate) fn reset_guard(&mut self) {
        if self.course.calm {
            return;
        }
        self.course.soon(1000, 30_000, Event::Guard);
        if self.course.rng.chance(40) {
            let settings = settings(&mut self.course.rng);
            self.course.log(|| format!("operator: {settings:?}"));
            let (all, classes) = (settings, Vec::new());
            self.scopes.set_guards(Guards { all, classes });
        }
        for zone in 0..self.zones.len() {
            let view = self.zones[zone].view.clone();
            if let Some(hold) = view.holds().first().filter(|_| self.course.rng.chance(30)) {
                let action = match self.course.rng.chance(50) {
                    true => HoldAction::Release,
                    false => HoldAction::Extend(self.course.rng.millis(0, 5000)),
                };
                let target = HoldTarget::Hold(hold.type_url.clone(), hold.reason);
                self.course.log(|| format!("operator: {action:?} {target:?} of {zone}"));
                self.zones[zone].forced |= action == HoldAction::Release;
                view.order(HoldOrder {
                    target,
                    action,
                    reason: "a world".into(),
                });
            }
            self.course.after(Duration::ZERO, Event::Upstream(zone));
        }
    }
}

fn settings(rng: &mut Rng) -> GuardSettings {
    let within = [Within::FirstState, Within::FirstState, Within::Always, Within::Never];
    let references = [
        ReferenceHold::UntilFree,
        ReferenceHold::UntilFree,
        ReferenceHold::UntilFree,
        ReferenceHold::For(Duration::from_secs(4)),
        ReferenceHold::Off,
    ];
    GuardSettings {
        references: references[rng.below(references.len())],
        mass: MassHold {
            within: within[rng.below(within.len())],
            hold: rng.millis(500, 8000),
            ..GUARD.mass
        },
    }
}
