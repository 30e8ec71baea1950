// SPDX-License-Identifier: Apache-2.0
//! Which removals are held, row by row. Owns what may be written; the thresholds are fixed.

use std::time::Duration;

use super::quantity::duration;
use super::reading::{Either, Spanned, no_word, single, words};
use super::rows::{Kind, section};
use crate::xds::Within;

/// `on`, `off`, or what is different from `on`.
pub(super) type Guard = Either<Switch, GuardParts>;

/// Whether anything is held.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Switch {
    On,
    Off,
}

/// What holds a removed cluster or route. A time was a choice once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum References {
    UntilFree,
    Off,
    Time,
}

section!(pub(super) struct GuardParts {
    /// In which messages of a control plane a loss of much at once is held: in the first whole state of each stream (first_state), in each message
    /// (always), or in none (never). Much is 15% of the names of a type, after what was added is counted against it, but at least 1 listener and
    /// 3 of any other type; or half of the endpoint assignments that become empty; or all of a type.
    "within" => within: Option<Within>, like "first_state";
    /// Whether a removed cluster or route stays while a served listener or route names it: until_free, or off.
    "references" => references: Option<Spanned<References>>, like "until_free";
    /// How long a change that leads to what another source lacks waits while its server is away. 0s: no change waits.
    "unready" => unready: Option<Duration>, like "60s";
    /// How long a loss is held, unless the control plane says the names again.
    "hold" => hold: HoldParts;
});

section!(pub(super) struct HoldParts {
    /// Endpoints: a client that keeps them sends requests to addresses that may be gone.
    "endpoints" => endpoints: Option<Duration>, like "2m", unless is_zero => "0 holds nothing; write `within: never`, or a time such as 5m";
    /// All other types.
    "other" => other: Option<Duration>, like "5m", unless is_zero => "0 holds nothing; write `within: never`, or a time such as 5m";
});

fn is_zero(time: &Option<Duration>) -> bool {
    *time == Some(Duration::ZERO)
}

words!(Switch as Self, "is not a guard" or "what is different from `on`":
    "on" | "true" => Self::On,
    "off" | "false" => Self::Off,
);

words!(Within as Self, "is not a time":
    "first_state" => Self::FirstState,
    "always" => Self::Always,
    "never" => Self::Never,
);

single!(References as Self: references, Kind::words(&["until_free", "off", "false"]), |_| String::new());

fn references(text: &str) -> Result<References, String> {
    match (text, duration(text)) {
        ("until_free", _) => Ok(References::UntilFree),
        ("off" | "false", _) => Ok(References::Off),
        (_, Ok(time)) if !time.is_zero() => Ok(References::Time),
        _ => Err(no_word(text, "does not say how long", &["until_free", "off"], None)),
    }
}
