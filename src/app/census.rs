//! Counts names by the state of their resource (G-15).
//!
//! Owns which of gRPC's states a name is in. Changes nothing.

use std::collections::{BTreeMap, BTreeSet};

use crate::admin::Cached;
use crate::cache::View;
use crate::xds::{Authorities, Known, Name, Target, Trouble, TypeUrl};

/// The number of names by authority, state and type.
pub(super) type Counts = BTreeMap<(String, Cached, TypeUrl), usize>;

/// Adds the names of a view. Only authorities in `served` are counted apart, because clients may invent any other.
pub(super) fn count(view: &View, served: &Authorities, counts: &mut Counts) {
    let mut note = |type_url: &TypeUrl, name: Option<&Name>, cached| {
        let authority = name.and_then(|name| served.of(name)).unwrap_or_default();
        *counts
            .entry((authority.to_owned(), cached, type_url.clone()))
            .or_default() += 1;
    };
    let cut = view.cut();
    for (type_url, slot) in cut.slots() {
        for state in slot.wildcard.iter().chain([&slot.named]) {
            let trouble = |name: &Name| state.error(name).map(|error| error.trouble);
            for (name, known) in state.entries() {
                note(type_url, Some(name), cached(Some(known), trouble(name)));
            }
            // A name that has only variants is present too.
            let varying = state.variants().map(|(variant, _)| variant.name());
            let varying: BTreeSet<&Name> = varying.filter(|name| !state.entries().contains_key(*name)).collect();
            for name in varying {
                note(type_url, Some(name), Cached::Acked);
            }
            let unknown = state.errors().iter().filter(|(name, _)| state.known(name).is_none());
            for (name, error) in unknown {
                note(type_url, Some(name), cached(None, Some(error.trouble)));
            }
        }
    }
    for (type_url, target) in view.lacking() {
        let name = match &target {
            Target::Wildcard => None,
            Target::Name(name) => Some(name),
        };
        let named = cut.slot(&type_url).map(|slot| &slot.named);
        let counted = name.zip(named).is_some_and(|(name, named)| named.error(name).is_some());
        if !counted {
            note(&type_url, name, Cached::Requested);
        }
    }
}

const fn cached(known: Option<&Known>, trouble: Option<Trouble>) -> Cached {
    match (known, trouble) {
        (Some(Known::Present(_)), None | Some(Trouble::Silence)) => Cached::Acked,
        (Some(Known::Present(_)), Some(Trouble::Rejected)) => Cached::NackedButCached,
        (Some(Known::Present(_)), Some(Trouble::Said)) => Cached::ReceivedErrorButCached,
        (Some(Known::Present(_)), Some(Trouble::Deleted)) => Cached::DoesNotExistButCached,
        (_, Some(Trouble::Rejected)) => Cached::Nacked,
        (_, Some(Trouble::Said)) => Cached::ReceivedError,
        (None, Some(Trouble::Silence)) => Cached::Timeout,
        (Some(Known::Absent(_)), None | Some(Trouble::Silence)) | (_, Some(Trouble::Deleted)) => Cached::DoesNotExist,
        (None, None) => Cached::Requested,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;
    use crate::cache::ViewSettings;
    use crate::xds::{Changes, Class, Reason, Resource, ResourceError, ResourceParts, Update, Want};

    const EDS: &str = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment";

    fn put(name: &str) -> Update {
        let parts = ResourceParts {
            constraints: None,
            type_url: &TypeUrl::new(EDS),
            name: name.into(),
            aliases: Vec::new(),
            passed_on: &[],
            body: b"body",
            endpoints: None,
            received: super::super::plan::now(),
        };
        Update::Put(Arc::new(Resource::new(parts, 0)), None)
    }

    /// G-15: every name is in exactly one state; the states have the names that gRPC gives them.
    #[test]
    fn every_name_is_counted_once() {
        let settings = ViewSettings {
            linger: Duration::ZERO,
            names_per_view: 0,
            pinned_bytes_per_view: 0,
        };
        let view = View::new(Class::default(), settings);
        let seat = view.enter();
        for name in ["waits", "silent", "rejected", "refused", "xdstp://a/x/waits"] {
            let want = Want {
                type_url: TypeUrl::new(EDS),
                target: Target::Name(name.into()),
                wanted: true,
                written: None,
            };
            assert_eq!(seat.want(&want), Ok(()));
        }
        let wrong = |name: &str, error: ResourceError| Update::Error(name.into(), Some(Arc::new(error)));
        let absent = |name: &str| Update::Absent(name.into(), Reason::Said);
        let named = vec![
            put("there"),
            put("kept rejected"),
            wrong("kept rejected", ResourceError::rejected()),
            put("kept refused"),
            wrong("kept refused", ResourceError::new(14, "later")),
            put("kept deleted"),
            wrong("kept deleted", ResourceError::deleted()),
            absent("gone"),
            absent("not found"),
            wrong("not found", ResourceError::not_found()),
            wrong("silent", ResourceError::silence()),
            wrong("rejected", ResourceError::rejected()),
            wrong("refused", ResourceError::new(14, "later")),
        ];
        let changes = |wildcard, updates| Changes {
            type_url: TypeUrl::new(EDS),
            wildcard,
            updates,
            complete: None,
            answered: Some(true),
        };
        let covered = vec![put("covered"), wrong("never sound", ResourceError::rejected())];
        drop(view.publish(&[changes(false, named), changes(true, covered)]));
        let mut counts = Counts::new();
        count(&view, &Authorities::from_iter(["a"]), &mut counts);
        let counts: Vec<String> = counts
            .iter()
            .map(|((authority, cached, _), count)| format!("{authority} {} {count}", cached.word()))
            .collect();
        assert_eq!(
            counts,
            [
                " requested 1",
                " does_not_exist 1",
                " does_not_exist_but_cached 1",
                " acked 2",
                " nacked 2",
                " nacked_but_cached 1",
                " received_error 2",
                " received_error_but_cached 1",
                " timeout 1",
                "a requested 1",
            ]
        );
    }
}
