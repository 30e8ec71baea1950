//! Validates which removals are held. Owns which values are allowed.

use std::time::Duration;

use super::Check;
use crate::config::quantity;
use crate::config::reading::{Scalar, Spanned};
use crate::config::shape::{Class, GuardParts, GuardShape, HoldParts, HoldShape, MassShape};
use crate::xds::{GuardSettings, Guards, HoldTimes, MassHold, ReferenceHold, Within};

/// Returns the settings of the relay and of its classes.
pub(super) fn guards(check: &mut Check, written: Option<GuardShape>, classes: &[Spanned<Class>]) -> Guards {
    let all = guard(check, "guard", written, GuardSettings::default());
    let own = classes.iter().enumerate().map(|(index, class)| {
        let written = class.value.guard.clone()?;
        Some(guard(check, &format!("classes[{index}].guard"), Some(written), all))
    });
    let classes = own.collect();
    Guards { all, classes }
}

/// Returns the settings under `key`; what is not written there is as in `usual`.
fn guard(check: &mut Check, key: &str, written: Option<GuardShape>, usual: GuardSettings) -> GuardSettings {
    let parts = match written {
        None => return usual,
        Some(GuardShape::Parts(parts)) => *parts,
        Some(GuardShape::Word(word)) => {
            let off = check.read(key, Some(&word), |text| match text {
                "off" | "false" => Ok(GuardSettings::OFF),
                _ => Err(format!(
                    "`{text}` is not a guard; write `off`, or `references` and `mass`"
                )),
            });
            return off.unwrap_or(usual);
        }
    };
    let GuardParts {
        references,
        mass,
        unready,
    } = parts;
    let references = check.read(&format!("{key}.references"), references.as_ref(), references_hold);
    let unready = check.read(&format!("{key}.unready"), unready.as_ref(), quantity::duration);
    GuardSettings {
        references: references.unwrap_or(usual.references),
        mass: mass_hold(check, &format!("{key}.mass"), mass, usual.mass),
        unready: unready.unwrap_or(usual.unready),
    }
}

fn mass_hold(check: &mut Check, key: &str, written: MassShape, usual: MassHold) -> MassHold {
    let MassShape {
        share,
        at_least,
        emptied,
        within,
        hold,
    } = written;
    let mut percent = |name: &str, given: Option<&Scalar>| {
        check.read(&format!("{key}.{name}"), given, |text| match quantity::percent(text)? {
            0 => Err("0 % would hold every removal; write at least 1%".to_owned()),
            percent => Ok(percent),
        })
    };
    let (share, emptied) = (percent("share", share.as_ref()), percent("emptied", emptied.as_ref()));
    let mut count = |name: &str, given: Option<&Scalar>| {
        check.read(
            &format!("{key}.at_least.{name}"),
            given,
            |text| match quantity::count(text)? {
                0 => Err("0 is no loss; write at least 1".to_owned()),
                count => Ok(count),
            },
        )
    };
    let listeners = count("listeners", at_least.listeners.as_ref());
    let other = count("other", at_least.other.as_ref());
    let within = check.read(&format!("{key}.within"), within.as_ref(), |text| match text {
        "first_state" => Ok(Within::FirstState),
        "always" => Ok(Within::Always),
        "never" => Ok(Within::Never),
        _ => Err(format!("`{text}` is not a time; write first_state, always or never")),
    });
    // A class can switch on what is off for the relay.
    let usual_hold = match usual.hold.other {
        Duration::ZERO => MassHold::default().hold,
        _ => usual.hold,
    };
    let hold = hold_times(check, &format!("{key}.hold"), hold, usual_hold);
    MassHold {
        share: share.unwrap_or(usual.share),
        listeners: listeners.unwrap_or(usual.listeners),
        other: other.unwrap_or(usual.other),
        emptied: emptied.unwrap_or(usual.emptied),
        within: within.unwrap_or(usual.within),
        hold,
    }
}

fn hold_times(check: &mut Check, key: &str, written: Option<HoldShape>, usual: HoldTimes) -> HoldTimes {
    let mut time = |key: &str, given: Option<&Scalar>| {
        check.read(key, given, |text| match quantity::duration(text)? {
            Duration::ZERO => Err("0 holds nothing; write `within: never`, or a time such as 5m".to_owned()),
            time => Ok(time),
        })
    };
    match written {
        None => usual,
        Some(HoldShape::All(text)) => time(key, Some(&text)).map_or(usual, HoldTimes::all),
        Some(HoldShape::Parts(HoldParts { endpoints, other })) => HoldTimes {
            endpoints: time(&format!("{key}.endpoints"), endpoints.as_ref()).unwrap_or(usual.endpoints),
            other: time(&format!("{key}.other"), other.as_ref()).unwrap_or(usual.other),
        },
    }
}

fn references_hold(text: &str) -> Result<ReferenceHold, String> {
    match text {
        "until_free" => Ok(ReferenceHold::UntilFree),
        "off" => Ok(ReferenceHold::Off),
        _ => match quantity::duration(text) {
            Ok(Duration::ZERO) | Err(_) => Err(format!(
                "`{text}` is not a time; write until_free, the longest time such as 10m, or off"
            )),
            Ok(time) => Ok(ReferenceHold::For(time)),
        },
    }
}
