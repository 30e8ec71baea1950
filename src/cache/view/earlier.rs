//! What was there before the current content, as far as there is room: so that content which a client rejects can be shown beside
//! what it had before.
//!
//! Owns what is kept of that, and for how long. Does not know who rejects what.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;

use xds::{Kind, Name, Resource, TypeUrl, Version};

/// Content that is not current any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EarlierContent {
    /// Its version.
    pub version: Version,
    /// The `Any`'s value.
    pub body: Bytes,
}

/// Replaced content by type, oldest first.
///
/// Invariant: of each type the sum of the bytes is at most the room that was given last, or there is one entry.
#[derive(Default)]
pub(super) struct Earlier(BTreeMap<TypeUrl, Ring>);

#[derive(Default)]
struct Ring {
    replaced: VecDeque<Replacement>,
    bytes: usize,
}

/// One content that has replaced another one.
struct Replacement {
    name: Name,
    new: Version,
    old: EarlierContent,
    bytes: usize,
}

/// The room for a type, whatever its content.
const ROOM_MIN: usize = 16 << 10;
const ROOM_MAX: usize = 1 << 20;
/// More room than that is given as a part of the bytes that the type has.
const SHARE: usize = 8;

impl Earlier {
    /// Notes that one content replaces another, of a type that has so many bytes. Secrets and what may not be cached are not kept.
    pub(super) fn note(&mut self, type_url: &TypeUrl, new: &Resource, old: &Resource, bytes: usize) {
        if type_url.kind() == Kind::Sds || !old.may_be_cached() {
            return;
        }
        let room = (bytes / SHARE).clamp(ROOM_MIN, ROOM_MAX);
        let ring = match self.0.get_mut(type_url) {
            Some(ring) => ring,
            None => self.0.entry(type_url.clone()).or_default(),
        };
        ring.add(new, old);
        ring.shrink(room);
    }

    /// Returns what is kept of a type, oldest first: each by the name and the version of what replaced it.
    pub(super) fn of(&self, type_url: &TypeUrl) -> Vec<((Name, Version), EarlierContent)> {
        let replaced = self.0.get(type_url).into_iter().flat_map(|ring| &ring.replaced);
        replaced
            .map(|one| ((one.name.clone(), one.new), one.old.clone()))
            .collect()
    }
}

impl Ring {
    fn add(&mut self, new: &Resource, old: &Resource) {
        let bytes = old.weight();
        self.bytes += bytes;
        self.replaced.push_back(Replacement {
            name: old.name().clone(),
            new: new.version(),
            old: EarlierContent {
                version: old.version(),
                // Not the resource itself, of which it is counted how many sessions still have it.
                body: old.body(),
            },
            bytes,
        });
    }

    fn shrink(&mut self, room: usize) {
        while self.bytes > room
            && self.replaced.len() > 1
            && let Some(oldest) = self.replaced.pop_front()
        {
            self.bytes -= oldest.bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use xds::ResourceParts;

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
    fn each_content_has_one_before_it() {
        let now = now();
        let all: Vec<Resource> = (0..3_u8).map(|one| content("a", &[one], now)).collect();
        let mut earlier = Earlier::default();
        for pair in all.windows(2) {
            earlier.note(&cds(), &pair[1], &pair[0], 0);
            earlier.note(&cds(), &content("b", b"2", now), &content("b", b"1", now), 0);
        }
        let all_before: BTreeMap<_, _> = earlier.of(&cds()).into_iter().collect();
        let before = |name: &str, version| all_before.get(&(Name::from(name), version)).cloned();
        for (new, old) in [(2, 1), (1, 0)] {
            let (version, body) = (all[old].version(), all[old].body());
            assert_eq!(before("a", all[new].version()), Some(EarlierContent { version, body }));
        }
        assert_eq!(before("a", all[0].version()), None);
        assert_eq!(before("c", all[1].version()), None);
    }

    #[test]
    fn what_is_kept_has_a_bound() {
        let now = now();
        let large = |one: u8| content("a", &[one; 5000], now);
        let mut earlier = Earlier::default();
        for one in 0..20 {
            earlier.note(&cds(), &large(one + 1), &large(one), 0);
        }
        let ring = &earlier.0[&cds()];
        let sum: usize = ring.replaced.iter().map(|one| one.bytes).sum();
        assert!(
            ring.bytes == sum && sum <= ROOM_MIN && ring.replaced.len() >= 2,
            "{sum}"
        );
        // One is kept, however large it is; and a type with much content has more room.
        let huge = content("a", &[0; ROOM_MIN * 2], now);
        earlier.note(&cds(), &large(0), &huge, 0);
        assert_eq!(earlier.0[&cds()].replaced.len(), 1);
        earlier.note(&cds(), &huge, &large(0), ROOM_MIN * 3 * SHARE);
        assert_eq!(earlier.0[&cds()].replaced.len(), 2);
    }

    /// Neither a secret nor what must not be cached stays in memory because somebody might want to compare it.
    #[test]
    fn secrets_are_not_kept() {
        let sds = TypeUrl::new("type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret");
        let now = now();
        let mut earlier = Earlier::default();
        earlier.note(&sds, &content("a", b"2", now), &content("a", b"1", now), 0);
        assert!(earlier.0.is_empty());
    }
}
