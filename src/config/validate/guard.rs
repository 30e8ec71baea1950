//! Validates which removals are held, for the relay and for its classes. Owns what holds for a class where it says nothing.

use std::time::Duration;

use super::Check;
use crate::config::guard::{Guard, Switch};
use crate::config::reading::{Either, Spanned};
use crate::config::shape::Class;
use crate::xds::{GuardSettings, Guards, HoldTimes, MassHold, ReferenceHold};

/// Returns the settings of the relay and of its classes.
pub(super) fn guards(check: &mut Check, written: Option<&Guard>, classes: &[Spanned<Class>]) -> Guards {
    let all = written.map(|written| guard(check, "guard", written, GuardSettings::default()));
    let all = all.unwrap_or_default();
    let own = classes.iter().enumerate().map(|(index, class)| {
        let written = class.value.guard.as_ref()?;
        Some(guard(check, &format!("classes[{index}].guard"), written, all))
    });
    let classes = own.collect();
    Guards { all, classes }
}

/// Returns the settings under `key`; what is not written there is as in `usual`.
fn guard(check: &mut Check, key: &str, written: &Guard, usual: GuardSettings) -> GuardSettings {
    let parts = match written {
        Either::Word(Switch::Off) => return GuardSettings::OFF,
        Either::Word(Switch::On) if usual == GuardSettings::OFF => return GuardSettings::default(),
        Either::Word(Switch::On) => return usual,
        Either::Parts(parts) => parts,
    };
    let references = parts.references.as_ref().map(|written| match written.value {
        ReferenceHold::For(_) => {
            let message = "a time is gone here: what is named stays until nothing names it; write until_free, or off";
            check.warn(written.place, format!("{key}.references"), message);
            ReferenceHold::UntilFree
        }
        word @ (ReferenceHold::UntilFree | ReferenceHold::Off) => word,
    });
    // A class can switch on what is off for the relay.
    let hold = match usual.mass.hold.other {
        Duration::ZERO => MassHold::default().hold,
        _ => usual.mass.hold,
    };
    GuardSettings {
        references: references.unwrap_or(usual.references),
        unready: parts.unready.unwrap_or(usual.unready),
        mass: MassHold {
            within: parts.within.unwrap_or(usual.mass.within),
            hold: HoldTimes {
                endpoints: parts.hold.endpoints.unwrap_or(hold.endpoints),
                other: parts.hold.other.unwrap_or(hold.other),
            },
            ..usual.mass
        },
    }
}
