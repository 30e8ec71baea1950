// SPDX-License-Identifier: Apache-2.0
//! Control planes that forget: in a moment they have a half, nothing, older content, other names of clusters or no endpoints, most of
//! them because they restart. They repair that early, late or never, and forget again. Operators change the rules, extend and release.
//!
//! Owns what is forgotten and when it is there again. Does not know what the relay makes of it.

use xds::{GuardSettings, Guards, HoldAction, HoldOrder, HoldTarget, HoldTimes, Name, Within};

use super::body::Type;
use super::course::Course;
use super::event::Event;
use super::origins::Origins;
use super::rng::Rng;
use super::tally::Broken;
use super::truth::{Key, Step, Truth};
use super::world::World;
use super::writer::GUARD;
use super::zone::Zone;

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
            self.relay.scopes.set_guards(Guards { all, classes });
        }
        for zone in self.origins.iter_mut() {
            zone.order(&mut self.course);
        }
    }
}

impl Origins {
    /// Control planes begin to forget.
    pub(crate) fn stir_amnesia(&mut self, course: &mut Course) {
        if !course.besides.amnesia {
            return;
        }
        for zone in 0..self.zones.len() {
            course.soon(500, 20_000, Event::Forget(zone));
        }
        course.soon(0, 20_000, Event::Guard);
    }
}

impl Zone {
    /// The operator perhaps releases or extends what is held, or does not.
    fn order(&mut self, course: &mut Course) {
        let holds = self.writer.view.head().holds();
        let one = course.rng.pick(&holds).cloned();
        let orders = if course.rng.chance(40) {
            course.rng.range(1, 3)
        } else {
            0
        };
        for hold in std::iter::repeat_n(one, orders).flatten() {
            let action = match course.rng.chance(50) {
                true => HoldAction::Release,
                false => HoldAction::Extend(course.rng.millis(0, 5000)),
            };
            let names: Vec<&Name> = hold.removals.keys().collect();
            let target = match course.rng.below(3) {
                0 => HoldTarget::Hold(hold.type_url.clone(), hold.reason, None),
                1 => HoldTarget::Hold(hold.type_url.clone(), hold.reason, hold.judgement),
                _ => match course.rng.pick(&names) {
                    Some(name) => HoldTarget::Resource(hold.type_url.clone(), (*name).clone()),
                    None => continue,
                },
            };
            course.log(|| format!("operator: {action:?} {target:?} of {}", self.id));
            self.writer.forced |= action == HoldAction::Release;
            self.writer.view.mailbox().order(HoldOrder {
                target,
                action,
                reason: "a world".into(),
            });
        }
        course.at_once(Event::Upstream(self.id));
    }

    /// A control plane forgets something, and will know it again or not.
    pub(crate) fn forget(&mut self, course: &mut Course) -> Result<(), Broken> {
        let zone = self.id;
        if course.calm {
            return Ok(());
        }
        let before = self.truth.clone();
        self.truth.forget(&mut course.rng);
        let pause = match course.rng.below(4) {
            0 => course.rng.millis(0, 300),
            1 => course.rng.millis(300, 4000),
            _ => course.rng.millis(4000, 40_000),
        };
        let next = match course.rng.chance(70) {
            true => Event::Recall(zone, Box::new(before)),
            false => Event::Forget(zone),
        };
        course.after(pause, next);
        course.log(|| format!("origin {zone}: forgets"));
        self.restart_origin(course)
    }

    /// A control plane knows again what it had.
    pub(crate) fn recall(&mut self, before: &Truth, course: &mut Course) -> Result<(), Broken> {
        let zone = self.id;
        if course.calm {
            return Ok(());
        }
        course.soon(200, 20_000, Event::Forget(zone));
        course.log(|| format!("origin {zone}: remembers"));
        self.truth.adopt(before);
        self.restart_origin(course)
    }

    /// A control plane restarts, or says in the middle of its life what has changed.
    fn restart_origin(&mut self, course: &mut Course) -> Result<(), Broken> {
        course.deliver(Event::Utter(self.id, false));
        match course.rng.chance(70) {
            true => self.sever(course),
            false => Ok(()),
        }
    }
}

fn settings(rng: &mut Rng) -> GuardSettings {
    let within = [Within::FirstState, Within::FirstState, Within::Always, Within::Never];
    GuardSettings {
        references: rng.below(5) < 4,
        within: within[rng.below(within.len())],
        hold: HoldTimes {
            endpoints: rng.millis(500, 30_000),
            other: rng.millis(500, 30_000),
        },
        ..GUARD
    }
}
