// SPDX-License-Identifier: Apache-2.0
//! What was there before the current content, as far as there is room: what clients accepted of it can be sent to others (K-37).
//!
//! Owns what is kept of that, and for how long. Does not know who rejects what.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Instant;

use crate::view::older::KEPT;
use xds::{Name, Older, Resource, TypeUrl};

/// Replaced content by type, oldest first.
///
/// Invariant: the sum of the bytes of all types is at most the room that was given last, and a type has at most as much as its current
/// content, or 1 MiB; or there is one entry.
#[derive(Default)]
pub(super) struct Earlier {
    rings: BTreeMap<TypeUrl, Replaced>,
    /// The bytes of all types.
    bytes: usize,
}

#[derive(Default)]
struct Replaced {
    replaced: VecDeque<Replacement>,
    bytes: usize,
    /// Where the contents of each name are. Made when somebody wants to know, because most never do.
    places: Option<BTreeMap<Name, Vec<usize>>>,
}

/// One content that has replaced another one.
struct Replacement {
    at: Instant,
    /// Not the resource itself, of which it is counted how many sessions still have it.
    old: Arc<Resource>,
    bytes: usize,
}

/// The room for a type, however small its content.
const ROOM_MAX: usize = 1 << 20;

impl Earlier {
    /// Notes that one content replaces another, of a type that has so many bytes. What may not be cached is not kept, and no
    /// secrets and endpoints.
    pub(super) fn note(
        &mut self,
        type_url: &TypeUrl,
        new: &Resource,
        old: &Resource,
        bytes: usize,
        history_bytes: usize,
    ) {
        if !old.may_be_cached() || type_url.kind().is_fleeting() {
            return;
        }
        if !self.rings.contains_key(type_url) {
            self.rings.insert(type_url.clone(), Replaced::default());
        }
        let Some(ring) = self.rings.get_mut(type_url) else {
            return;
        };
        let before = ring.bytes;
        ring.add(new, old);
        ring.forget(new.received());
        ring.shrink(bytes.max(ROOM_MAX));
        self.bytes = self.bytes + ring.bytes - before;
        self.shrink(history_bytes);
    }

    /// The control plane has removed these names: nobody is offered what they had.
    pub(super) fn withdraw(&mut self, type_url: &TypeUrl, names: &BTreeSet<&Name>) {
        if let Some(ring) = self.rings.get_mut(type_url).filter(|_| !names.is_empty()) {
            self.bytes -= ring.withdraw(names);
        }
    }

    fn shrink(&mut self, room: usize) {
        while self.bytes > room {
            let Some(largest) = self.rings.values_mut().max_by_key(|ring| ring.bytes) else {
                return;
            };
            if largest.replaced.is_empty() {
                return;
            }
            self.bytes -= largest.drop_oldest();
        }
    }

    /// Returns what is kept of a name, and when each was replaced.
    pub(super) fn of_name(
        &mut self,
        type_url: &TypeUrl,
        name: &Name,
    ) -> impl Iterator<Item = (&Arc<Resource>, Instant)> {
        let ring = self.rings.get_mut(type_url).into_iter();
        ring.flat_map(|ring| ring.of_name(name).map(|one| (&one.old, one.at)))
    }

    /// Returns all that clients have accepted.
    pub(super) fn all(&self) -> impl Iterator<Item = Older> {
        let all = self.rings.iter();
        let all = all.flat_map(|(type_url, ring)| ring.replaced.iter().map(move |one| (type_url, one)));
        let all = all.filter(|(_, one)| one.old.accepted() != 0);
        all.map(|(type_url, one)| Older {
            type_url: type_url.clone(),
            content: one.old.clone(),
            since: one.at,
            keepers: Vec::new(),
            refers: false,
        })
    }
}

impl Replaced {
    fn add(&mut self, new: &Resource, old: &Resource) {
        let bytes = old.weight();
        self.bytes += bytes;
        self.places = None;
        self.replaced.push_back(Replacement {
            at: new.received(),
            old: Arc::new(old.twin()),
            bytes,
        });
    }

    fn of_name(&mut self, name: &Name) -> impl Iterator<Item = &Replacement> {
        let Self { replaced, places, .. } = self;
        let places = places.get_or_insert_with(|| {
            let mut places: BTreeMap<Name, Vec<usize>> = BTreeMap::new();
            for (at, one) in replaced.iter().enumerate() {
                places.entry(one.old.name().clone()).or_default().push(at);
            }
            places
        });
        let of_name = places.get(name).into_iter().flatten();
        of_name.filter_map(|at| replaced.get(*at))
    }

    fn withdraw(&mut self, names: &BTreeSet<&Name>) -> usize {
        let before = self.bytes;
        self.replaced.retain(|one| {
            let stays = !names.contains(one.old.name());
            self.bytes -= if stays { 0 } else { one.bytes };
            stays
        });
        self.places = None;
        before - self.bytes
    }

    fn drop_oldest(&mut self) -> usize {
        let bytes = self.replaced.pop_front().map_or(0, |oldest| oldest.bytes);
        self.bytes -= bytes;
        self.places = None;
        bytes
    }

    fn shrink(&mut self, room: usize) {
        while self.bytes > room && self.replaced.len() > 1 {
            self.drop_oldest();
        }
    }

    fn forget(&mut self, now: Instant) {
        while self.replaced.front().is_some_and(|oldest| oldest.at + KEPT < now) {
            self.drop_oldest();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;
    use xds::ResourceParts;

    const BOUND: usize = 16 << 10;

    #[expect(clippy::disallowed_methods, reason = "any instant will do")]
    fn now() -> Instant {
        Instant::now()
    }

    fn cds() -> TypeUrl {
        TypeUrl::new("type.googleapis.com/envoy.config.cluster.v3.Cluster")
    }

    fn content(name: &str, body: &[u8], received: Instant) -> Resource {
        let parts = ResourceParts {
            type_url: &cds(),
            name: name.into(),
            aliases: Vec::new(),
            passed_on: &[],
            body,
            endpoints: None,
            received,
        };
        Resource::new(parts, 0)
    }

    #[test]
    fn what_is_kept_has_a_bound() {
        let now = now();
        let large = |one: u8| content("a", &[one; 5000], now);
        let mut earlier = Earlier::default();
        let bounded = BOUND;
        for one in 0..20 {
            earlier.note(&cds(), &large(one + 1), &large(one), 0, bounded);
        }
        let ring = &earlier.rings[&cds()];
        let sum: usize = ring.replaced.iter().map(|one| one.bytes).sum();
        assert!(
            earlier.bytes == sum && sum <= BOUND && ring.replaced.len() >= 2,
            "{sum}"
        );
        // Other types have a part of the same room, and what is old goes.
        let rds = TypeUrl::new("type.googleapis.com/envoy.config.route.v3.RouteConfiguration");
        earlier.note(&rds, &large(1), &large(0), 0, bounded);
        assert!(earlier.bytes <= BOUND, "{}", earlier.bytes);
        let late = content("a", &[99; 5000], now + KEPT + Duration::from_secs(1));
        earlier.note(&cds(), &late, &large(20), 0, bounded);
        assert_eq!(earlier.rings[&cds()].replaced.len(), 1);
    }

    #[test]
    fn what_is_removed_is_not_what_came_before() {
        let now = now();
        let mut earlier = Earlier::default();
        for name in ["gone", "stays"] {
            earlier.note(&cds(), &content(name, b"2", now), &content(name, b"1", now), 0, BOUND);
        }
        let gone = Name::from("gone");
        earlier.withdraw(&cds(), &BTreeSet::from([&gone]));
        assert_eq!(earlier.of_name(&cds(), &gone).count(), 0);
        assert_eq!(earlier.of_name(&cds(), &"stays".into()).count(), 1);
        assert_eq!(earlier.bytes, earlier.rings[&cds()].bytes);
    }

    /// An old key may be what must not be used, and older endpoints lead nowhere.
    #[test]
    fn secrets_and_endpoints_are_not_kept() {
        let now = now();
        let mut earlier = Earlier::default();
        for word in ["sds", "eds"] {
            let of = TypeUrl::called(word).unwrap();
            earlier.note(&of, &content("a", b"2", now), &content("a", b"1", now), 0, 1000);
        }
        assert!(earlier.rings.is_empty());
    }

    /// What changes all the time keeps no more than it has.
    #[test]
    fn what_is_small_keeps_little() {
        let now = now();
        for (bytes, most) in [(0, ROOM_MAX), (2 * ROOM_MAX, 2 * ROOM_MAX)] {
            let large = |one: u8| content("a", &vec![one; ROOM_MAX / 4], now);
            let mut earlier = Earlier::default();
            for one in 0..20 {
                earlier.note(&cds(), &large(one + 1), &large(one), bytes, 16 * ROOM_MAX);
            }
            assert!(earlier.bytes <= most && earlier.bytes > most / 2, "{}", earlier.bytes);
        }
    }
}
