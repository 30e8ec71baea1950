//! What is known of what a poll wants, and its JSON.
//!
//! Owns the set, its version, and that its text is made once for all who get it. Refuses to wait.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;

use crate::cache::Text;
use crate::downstream::Shared;
use crate::json::{Secrets, response};
use crate::wire::Rope;
use crate::xds::{Glimpse, Known, Name, Resource, State, TypeUrl, Version};

/// What is known at one moment.
pub(super) struct Found<'a> {
    /// All that there is, if that is wanted.
    all: Option<&'a State>,
    /// What is wanted by name.
    named: BTreeMap<&'a Name, &'a Arc<Resource>>,
    /// Whether something is not known.
    open: bool,
}

impl<'a> Found<'a> {
    /// What is known of these names; without names, of all that there is.
    pub(super) fn of(glimpse: Glimpse<'a>, names: &'a [Name]) -> Self {
        let mut found = Self {
            all: None,
            named: BTreeMap::new(),
            open: false,
        };
        if names.is_empty() {
            // H-06. B-20: a short state is no answer.
            found.all = glimpse
                .wildcard()
                .map(|state| &**state)
                .filter(|state| state.complete());
            found.open = found.all.is_none();
        }
        for name in names {
            match glimpse.known(name) {
                Some(Known::Present(resource)) => drop(found.named.insert(resource.name(), resource)),
                Some(Known::Absent(_)) => {}
                None if name.is_collection() => {
                    let members = glimpse.members(name).map(|resource| (resource.name(), resource));
                    let before = found.named.len();
                    found.named.extend(members);
                    found.open |= found.named.len() == before;
                }
                None => found.open = true,
            }
        }
        found
    }

    /// Whether all of it is known.
    pub(super) const fn is_settled(&self) -> bool {
        !self.open
    }

    /// Whether none of it is there.
    pub(super) fn is_empty(&self) -> bool {
        self.resources().next().is_none()
    }

    /// K-09: the version of exactly this set, as on a stream.
    pub(super) fn version(&self) -> Version {
        let all = self.all.map_or(Version::EMPTY, State::sum);
        self.named
            .values()
            .fold(all, |sum, resource| sum.plus(resource.version()))
    }

    /// The whole body. Each resource is written once, and each set as well, whoever polls for it.
    pub(super) fn reply(&self, type_url: &TypeUrl, shared: &Shared) -> Result<Rope, String> {
        let version = self.version();
        let text = shared.library.reply(version, || {
            let texts: Result<Vec<Bytes>, String> = self
                .resources()
                .map(|resource| text(resource, type_url, shared))
                .collect();
            let pieces = response(&version.to_string(), type_url.url(), &shared.identifier, &texts?);
            Ok(Arc::from(pieces))
        });
        let pieces = Text::clone(&text)?;
        Ok(Rope::new(Bytes::new(), pieces))
    }

    fn resources(&self) -> impl Iterator<Item = &'a Arc<Resource>> {
        let all = self.all.into_iter().flat_map(State::resources);
        all.chain(self.named.values().copied())
    }
}

/// J-04: what cannot be written makes the whole reply fail: nothing is left out in silence.
fn text(resource: &Resource, type_url: &TypeUrl, shared: &Shared) -> Result<Bytes, String> {
    let text = shared.library.text(resource.version(), || {
        let json = shared
            .schemas
            .resource_json(type_url.url(), &resource.body(), Secrets::Show)
            .map_err(|fault| format!("{}: {fault}", resource.name()))?;
        if json.unknown_fields > 0 {
            tracing::warn!(
                %type_url, name = %resource.name(), fields = json.unknown_fields,
                "fields that the descriptors do not have are left out for clients that poll; add newer `descriptors`"
            );
        }
        Ok(Arc::from([Bytes::from(json.text)]))
    });
    let pieces = Text::clone(&text)?;
    Ok(pieces.first().cloned().unwrap_or_default())
}
