// SPDX-License-Identifier: Apache-2.0
//! What the relay has of its control planes, name by name (G-15).
//!
//! Owns which of gRPC's states a name is in. Changes nothing.

use std::sync::Arc;

use super::cached::Cached;
use crate::cache::View;
use crate::xds::{Cut, Known, Name, Reason, Resource, ResourceError, Slot, State, Target, Trouble, TypeUrl};

/// One name, or the wildcard, of a view.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Its type.
    pub type_url: TypeUrl,
    /// The name; `None` is the wildcard.
    pub name: Option<Name>,
    /// Whether the wildcard has it. Otherwise it was asked for by name.
    pub covered: bool,
    /// Its state.
    pub cached: Cached,
    /// Its content.
    pub resource: Option<Arc<Resource>>,
    /// What is wrong with it.
    pub error: Option<Arc<ResourceError>>,
}

/// Calls `tell` with each entry of a view.
pub fn visit(view: &View, mut tell: impl FnMut(Entry)) {
    let cut = view.cut();
    for (_, slot) in cut.slots() {
        for (state, covered) in parts(slot) {
            let entries = state.entries().iter();
            entries.for_each(|(name, known)| tell(entry(state, name, Some(known), covered)));
            rest(state, covered, &mut tell);
        }
    }
    lacking(&cut, view.lacking()).for_each(tell);
}

/// Calls `tell` with each entry of this name.
pub fn visit_name(view: &View, name: &Name, mut tell: impl FnMut(Entry)) {
    let cut = view.cut();
    for (_, slot) in cut.slots() {
        for (state, covered) in parts(slot) {
            let known = state.entries().get(name);
            if known.is_some() || state.known(name).is_none() && state.error(name).is_some() {
                tell(entry(state, name, known, covered));
            }
        }
    }
    let target = Target::Name(name.clone());
    let types = view.lacking_of(&target).into_iter();
    lacking(&cut, types.map(|type_url| (type_url, target.clone()))).for_each(tell);
}

/// Returns what the wildcard has, and what was asked for by name.
pub(super) fn parts(slot: &Slot) -> impl Iterator<Item = (&State, bool)> {
    let covered = slot.wildcard.iter().map(|state| (&**state, true));
    covered.chain([(&*slot.named, false)])
}

/// Returns what a state has of a name.
pub(super) fn entry(state: &State, name: &Name, known: Option<&Known>, covered: bool) -> Entry {
    let error = state.error(name);
    let resource = known.and_then(Known::resource);
    Entry {
        type_url: state.type_url().clone(),
        name: Some(name.clone()),
        covered,
        cached: cached(known, error.map(|error| error.trouble)),
        resource: resource.cloned(),
        error: error.cloned(),
    }
}

/// Calls `tell` with each name of which a state has only an error.
pub(super) fn rest(state: &State, covered: bool, tell: impl FnMut(Entry)) {
    let unknown = state.errors().keys().filter(|name| state.known(name).is_none());
    unknown.map(|name| entry(state, name, None, covered)).for_each(tell);
}

/// Returns those of the targets that clients ask for, and of which nothing was said.
pub(super) fn lacking(cut: &Cut, targets: impl IntoIterator<Item = (TypeUrl, Target)>) -> impl Iterator<Item = Entry> {
    let told = |type_url: &TypeUrl, name: &Name| {
        let slot = cut.slot(type_url);
        slot.is_some_and(|slot| slot.known(name).is_some() || slot.named.error(name).is_some())
    };
    targets.into_iter().filter_map(move |(type_url, target)| {
        let name = match target {
            Target::Wildcard => None,
            Target::Name(name) => Some(name),
        };
        (!name.as_ref().is_some_and(|name| told(&type_url, name))).then(|| Entry {
            covered: name.is_none(),
            type_url,
            name,
            cached: Cached::Requested,
            resource: None,
            error: None,
        })
    })
}

const fn cached(known: Option<&Known>, trouble: Option<Trouble>) -> Cached {
    match (known, trouble) {
        (Some(Known::Present(_)), None | Some(Trouble::Silence)) => Cached::Acked,
        (Some(Known::Present(_)), Some(Trouble::Rejected)) => Cached::NackedButCached,
        (Some(Known::Present(_)), Some(Trouble::Said)) => Cached::ReceivedErrorButCached,
        (Some(Known::Present(_)), Some(Trouble::Deleted)) => Cached::DoesNotExistButCached,
        (_, Some(Trouble::Rejected)) => Cached::Nacked,
        (_, Some(Trouble::Said)) => Cached::ReceivedError,
        // A client is told in the end that it does not exist, but nobody has said so.
        (None | Some(Known::Held(_)), Some(Trouble::Silence))
        | (Some(Known::Absent(Reason::TimedOut)), None | Some(Trouble::Silence)) => Cached::Timeout,
        (Some(Known::Absent(_)), None | Some(Trouble::Silence)) | (_, Some(Trouble::Deleted)) => Cached::DoesNotExist,
        (None | Some(Known::Held(_)), None) => Cached::Requested,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use super::*;
    use crate::cache::ViewSettings;
    use crate::classes::Class;
    use crate::clock;
    use crate::xds::{Changes, Phase, Reason, ResourceParts, Update, Want};

    const EDS: &str = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment";

    fn put(name: &str) -> Update {
        let parts = ResourceParts {
            type_url: &TypeUrl::new(EDS),
            name: name.into(),
            aliases: Vec::new(),
            passed_on: &[],
            body: b"body",
            endpoints: None,
            received: clock::now(),
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
            history_bytes: 16 << 20,
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
            phase: Phase::Steady,
        };
        let covered = vec![put("covered"), wrong("never sound", ResourceError::rejected())];
        drop(view.publish(&[changes(false, named), changes(true, covered)]));
        let mut counts = BTreeMap::new();
        visit(&view, |entry| *counts.entry(entry.cached).or_insert(0) += 1);
        let counts: Vec<String> = counts
            .iter()
            .map(|(cached, count)| format!("{} {count}", cached.word()))
            .collect();
        assert_eq!(
            counts,
            [
                "requested 2",
                "does_not_exist 1",
                "does_not_exist_but_cached 1",
                "acked 2",
                "nacked 2",
                "nacked_but_cached 1",
                "received_error 2",
                "received_error_but_cached 1",
                "timeout 1",
            ]
        );
    }
}
