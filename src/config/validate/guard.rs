// SPDX-License-Identifier: Apache-2.0
//! Validates which removals are held, for the relay and for its classes. Owns what holds for a class where it says nothing.

use std::time::Duration;

use super::Check;
use crate::config::guard::{Guard, References, Switch};
use crate::config::reading::{Either, Spanned};
use crate::config::shape::Class;
use crate::xds::{GuardSettings, Guards, HoldTimes};

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
    let references = parts.references.as_ref().map(|written| {
        if written.value == References::Time {
            let message = "a time is gone here: what is named stays until nothing names it; write until_free, or off";
            check.warn(written.place, format!("{key}.references"), message);
        }
        written.value != References::Off
    });
    // A class can switch on what is off for the relay.
    let hold = match usual.hold.other {
        Duration::ZERO => GuardSettings::default().hold,
        _ => usual.hold,
    };
    GuardSettings {
        references: references.unwrap_or(usual.references),
        within: parts.within.unwrap_or(usual.within),
        hold: HoldTimes {
            endpoints: parts.hold.endpoints.unwrap_or(hold.endpoints),
            other: parts.hold.other.unwrap_or(hold.other),
        },
        unready: parts.unready.unwrap_or(usual.unready),
    }
}
