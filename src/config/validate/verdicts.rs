//! Validates when content is condemned. Owns which values are allowed.

use super::Check;
use crate::config::quantity;
use crate::config::shape::{VerdictParts, VerdictsShape};
use crate::xds::VerdictSettings;

/// Returns after how many rejections a content is condemned; 0: never.
pub(super) fn after(check: &mut Check, written: Option<VerdictsShape>) -> usize {
    let read = match written {
        None => None,
        Some(VerdictsShape::Word(word)) => check.read("verdicts", Some(&word), |text| match text {
            "off" | "false" => Ok(0),
            _ => Err(format!("`{text}` is not a verdict; write `off`, or `after`")),
        }),
        Some(VerdictsShape::Parts(VerdictParts { after })) => {
            check.read("verdicts.after", after.as_ref(), |text| match quantity::count(text)? {
                0 => Err("0 would condemn what nobody rejects; write at least 1, or `verdicts: off`".to_owned()),
                after => Ok(after),
            })
        }
    };
    read.unwrap_or(VerdictSettings::default().after)
}
