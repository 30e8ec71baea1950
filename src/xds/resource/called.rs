//! What a body calls its resource.
//!
//! Owns whether that is the resource's name. Refuses to decode a body.

use bytes::BytesMut;

use super::{Resource, ResourceParts, put_field};
use crate::xds::NameRule;

/// F-09: whether a body does not have the name of new style that its resource has, because somebody wrote it in another way, and the
/// server compares bytes.
pub(super) fn otherwise(parts: &ResourceParts<'_>) -> bool {
    let NameRule::Field(number) = parts.type_url.traits().name else {
        return false;
    };
    if !parts.name.is_new_style() {
        return false;
    }
    let mut field = BytesMut::new();
    put_field(&mut field, number, parts.name.as_str().as_bytes());
    // Nearly always it is the first thing in the body.
    !parts.body.windows(field.len()).any(|part| *part == field)
}

impl Resource {
    /// Whether its body calls it by another text than its name: where there is nothing around the body, that is what a client reads.
    #[must_use]
    pub const fn is_miscalled(&self) -> bool {
        self.miscalled
    }
}
