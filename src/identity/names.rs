// SPDX-License-Identifier: Apache-2.0
//! How many names a certificate has.
//!
//! Owns the way to them in the DER of a certificate. Does not read them: a library does, which passes over what it does not take for
//! valid, and does not say so.

use super::subject::{Element, elements};

/// How many names there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Count {
    pub(super) dns: usize,
    pub(super) uris: usize,
}

impl Count {
    /// More than anybody can read.
    pub(super) const UNKNOWN: Self = Self {
        dns: usize::MAX,
        uris: usize::MAX,
    };
}

/// The tags of DER: extensions of a certificate, and two kinds of names.
const EXTENSIONS: u8 = 0xa3;
const DNS: u8 = 0x82;
const URI: u8 = 0x86;
/// The object identifier of subjectAltName.
const ALTERNATIVE_NAMES: &[u8] = &[85, 29, 17];

/// Counts the alternative names in a certificate. None if it is not DER.
pub(super) fn of(certificate: &[u8]) -> Option<Count> {
    let whole = elements(certificate)?;
    let parts = elements(whole.first()?.content)?;
    let signed = elements(parts.first()?.content)?;
    let Some(extensions) = signed.iter().find(|part| part.tag == EXTENSIONS) else {
        return Some(Count::default());
    };
    let mut count = Count::default();
    for extension in elements(elements(extensions.content)?.first()?.content)? {
        let fields = elements(extension.content)?;
        if fields.first()?.content != ALTERNATIVE_NAMES {
            continue;
        }
        let names = elements(fields.last()?.content)?;
        let names = elements(names.first()?.content)?;
        let of = |tag| names.iter().filter(|name: &&Element<'_>| name.tag == tag).count();
        count.dns += of(DNS);
        count.uris += of(URI);
    }
    Some(count)
}
