// SPDX-License-Identifier: Apache-2.0
//! The JSON response to a poll.
//!
//! Owns that each text is made once for all clients that get it. Decides neither the content nor who gets it.

use std::sync::Arc;

use bytes::Bytes;

use crate::cache::Text;
use crate::downstream::shared::Shared;
use crate::json::{Secrets, response};
use crate::protocol::PollContent;
use crate::wire::Rope;
use crate::xds::{Resource, TypeUrl};

/// Returns the body. Each resource, and each set of resources, is written once for all clients that poll for it.
pub(super) fn reply(found: &PollContent<'_>, type_url: &TypeUrl, shared: &Shared) -> Result<Rope, String> {
    let version = found.version();
    let made = shared.library.reply(version, || {
        let texts: Result<Vec<Bytes>, String> = found
            .resources()
            .map(|resource| text(resource, type_url, shared))
            .collect();
        let pieces = response(&version.to_string(), type_url.url(), &shared.identifier, &texts?);
        Ok(Arc::from(pieces))
    });
    let pieces = Text::clone(&made)?;
    Ok(Rope::new(Bytes::new(), pieces))
}

/// J-04: returns the JSON of a resource. An error makes the whole reply fail, so that no resource is left out silently.
fn text(resource: &Resource, type_url: &TypeUrl, shared: &Shared) -> Result<Bytes, String> {
    let text = shared.library.text(resource.version(), || {
        let json = shared
            .schemas
            .resource_json(type_url.url(), &resource.body(), Secrets::Show)
            .map_err(|fault| format!("{}: {fault}", resource.name()))?;
        if json.unknown_fields > 0 {
            tracing::warn!(
                %type_url, name = %resource.name(), fields = json.unknown_fields,
                "responses to polls lack fields that the descriptors do not have; configure newer `descriptors`"
            );
        }
        Ok(Arc::from([Bytes::from(json.text)]))
    });
    let pieces = Text::clone(&text)?;
    Ok(pieces.first().cloned().unwrap_or_default())
}
