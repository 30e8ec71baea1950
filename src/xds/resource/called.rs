// SPDX-License-Identifier: Apache-2.0
//! The name that the body of a resource contains.
//!
//! Owns whether that is the resource's name. Does not decode a body.

use bytes::BytesMut;

use super::{Resource, ResourceParts, put_field};
use crate::NameRule;

/// F-09: whether the body does not contain the resource's new-style name. That is so if a client wrote the name in another way,
/// and the server compares bytes.
pub(super) fn otherwise(parts: &ResourceParts<'_>) -> bool {
    let NameRule::Field(number) = parts.type_url.traits().name else {
        return false;
    };
    if !parts.name.is_new_style() {
        return false;
    }
    let mut field = BytesMut::new();
    put_field(&mut field, number, parts.name.as_str().as_bytes());
    // The name is nearly always the first field of the body.
    !parts.body.windows(field.len()).any(|part| *part == field)
}

impl Resource {
    /// Whether its body contains another text than its name. A client that gets the body without a wrapper reads that text.
    pub fn is_miscalled(&self) -> bool {
        self.content.miscalled
    }
}
