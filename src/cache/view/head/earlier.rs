//! What was there before the current content, as far as there is room: so that content which a client rejects can be shown beside
//! what it had before, and what others accepted can stand in for it.
//!
//! Owns what is kept of that, and for how long. Does not know who rejects what.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;

use xds::{Kind, Name, Resource, TypeUrl, VerdictSettings, Version};

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
/// Invariant: while verdicts are on, the sum of the bytes of all types but endpoints is at most the room that was given last, and a type
/// has at most as much as its current content, or 1 MiB. Endpoints, and every type while verdicts are off, have at most the share of
/// their type; or there is one entry.
#[derive(Default)]
pub(super) struct Earlier {
    rings: BTreeMap<TypeUrl, Ring>,
    /// The bytes of all types but endpoints.
    bytes: usize,
}

#[derive(Default)]
struct Ring {
    replaced: VecDeque<Replacement>,
    bytes: usize,
}

/// One content that has replaced another one.
struct Replacement {
    new: Version,
    at: Instant,
    /// Not the resource itself, of which it is counted how many sessions still have it.
    old: Arc<Resource>,
    bytes: usize,
}

/// The room for a type of which nothing stands in, whatever its content.
const ROOM_MIN: usize = 16 << 10;
const ROOM_MAX: usize = 1 << 20;
/// More room than that is given as a part of the bytes that the type has.
const SHARE: usize = 8;
/// So long content is kept that has changed.
const KEPT: Duration = Duration::from_secs(10 * 60);

impl Earlier {
    /// Notes that one content replaces another, of a type that has so many bytes. What may not be cached is not kept, and a secret only
    /// where it may have to stand in for the new one.
    pub(super) fn note(
        &mut self,
        type_url: &TypeUrl,
        new: &Resource,
        old: &Resource,
        bytes: usize,
        settings: VerdictSettings,
    ) {
        let kind = type_url.kind();
        if !old.may_be_cached() || kind == Kind::Sds && settings.after == 0 {
            return;
        }
        if !self.rings.contains_key(type_url) {
            self.rings.insert(type_url.clone(), Ring::default());
        }
        let Some(ring) = self.rings.get_mut(type_url) else {
            return;
        };
        let before = ring.bytes;
        ring.add(new, old);
        // What stands in for nothing is only shown, and needs no more than a share.
        let stands_in = settings.after > 0 && !kind.is_endpoints();
        if stands_in {
            ring.forget(new.received());
            ring.shrink(bytes.max(ROOM_MAX));
        } else {
            ring.shrink((bytes / SHARE).clamp(ROOM_MIN, ROOM_MAX));
        }
        if !kind.is_endpoints() {
            self.bytes = self.bytes + ring.bytes - before;
        }
        if stands_in {
            self.shrink(settings.history_bytes);
        }
    }

    /// Verdicts are off: secrets are kept for nothing else.
    pub(super) fn forget_secrets(&mut self) {
        let rings = &mut self.rings;
        let secrets: Vec<TypeUrl> = rings.keys().filter(|of| of.kind() == Kind::Sds).cloned().collect();
        for ring in secrets.iter().filter_map(|of| rings.remove(of)) {
            self.bytes -= ring.bytes;
        }
    }

    fn shrink(&mut self, room: usize) {
        while self.bytes > room {
            let others = self.rings.iter_mut().filter(|(of, _)| !of.kind().is_endpoints());
            let Some((_, largest)) = others.max_by_key(|(_, ring)| ring.bytes) else {
                return;
            };
            if largest.replaced.len() <= 1 {
                return;
            }
            self.bytes -= largest.drop_oldest();
        }
    }

    /// Returns what is kept of a type, oldest first: each by the name and the version of what replaced it. Secrets are shown to nobody.
    pub(super) fn of(&self, type_url: &TypeUrl) -> Vec<((Name, Version), EarlierContent)> {
        let shown = self.rings.get(type_url).filter(|_| type_url.kind() != Kind::Sds);
        let replaced = shown.into_iter().flat_map(|ring| &ring.replaced);
        let content = |old: &Resource| EarlierContent {
            version: old.version(),
            body: old.body(),
        };
        replaced
            .map(|one| ((one.old.name().clone(), one.new), content(&one.old)))
            .collect()
    }

    /// Returns what this content has replaced, and when.
    pub(super) fn before(&self, type_url: &TypeUrl, name: &Name, version: Version) -> Option<(Arc<Resource>, Instant)> {
        let mut replaced = self.rings.get(type_url)?.replaced.iter().rev();
        let found = replaced.find(|one| one.new == version && one.old.name() == name)?;
        Some((found.old.clone(), found.at))
    }

    /// Returns the names whose content was replaced last, so many at most.
    pub(super) fn names(&self, type_url: &TypeUrl, most: usize) -> Vec<Name> {
        let replaced = self
            .rings
            .get(type_url)
            .into_iter()
            .flat_map(|ring| ring.replaced.iter().rev());
        replaced.map(|one| one.old.name().clone()).take(most).collect()
    }
}

impl Ring {
    fn add(&mut self, new: &Resource, old: &Resource) {
        let bytes = old.weight();
        self.bytes += bytes;
        self.replaced.push_back(Replacement {
            new: new.version(),
            at: new.received(),
            old: Arc::new(old.twin()),
            bytes,
        });
    }

    fn drop_oldest(&mut self) -> usize {
        let bytes = self.replaced.pop_front().map_or(0, |oldest| oldest.bytes);
        self.bytes -= bytes;
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

    fn settings(after: usize, history_bytes: usize) -> VerdictSettings {
        VerdictSettings { after, history_bytes }
    }

    #[test]
    fn each_content_has_one_before_it() {
        let now = now();
        let all: Vec<Resource> = (0..3_u8).map(|one| content("a", &[one], now)).collect();
        let mut earlier = Earlier::default();
        for pair in all.windows(2) {
            earlier.note(&cds(), &pair[1], &pair[0], 0, settings(2, 1000));
            earlier.note(
                &cds(),
                &content("b", b"2", now),
                &content("b", b"1", now),
                0,
                settings(2, 1000),
            );
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
        let bounded = settings(2, ROOM_MIN);
        for one in 0..20 {
            earlier.note(&cds(), &large(one + 1), &large(one), 0, bounded);
        }
        let ring = &earlier.rings[&cds()];
        let sum: usize = ring.replaced.iter().map(|one| one.bytes).sum();
        assert!(
            earlier.bytes == sum && sum <= ROOM_MIN && ring.replaced.len() >= 2,
            "{sum}"
        );
        // Other types have a part of the same room, and what is old goes.
        let rds = TypeUrl::new("type.googleapis.com/envoy.config.route.v3.RouteConfiguration");
        earlier.note(&rds, &large(1), &large(0), 0, bounded);
        assert!(earlier.bytes <= ROOM_MIN, "{}", earlier.bytes);
        let late = content("a", &[99; 5000], now + KEPT + Duration::from_secs(1));
        earlier.note(&cds(), &late, &large(20), 0, bounded);
        assert_eq!(earlier.rings[&cds()].replaced.len(), 1);
    }

    /// Content that changes all the time has a room of its own.
    #[test]
    fn endpoints_do_not_crowd_out_others() {
        let eds = TypeUrl::new("type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment");
        let now = now();
        let mut earlier = Earlier::default();
        earlier.note(
            &cds(),
            &content("a", b"2", now),
            &content("a", b"1", now),
            0,
            settings(2, 1000),
        );
        for one in 0..20 {
            let body = |one: u8| content("b", &[one; 5000], now);
            earlier.note(&eds, &body(one + 1), &body(one), 0, settings(2, 1000));
        }
        let version = content("a", b"2", now).version();
        assert!(earlier.before(&cds(), &"a".into(), version).is_some());
        assert!(earlier.rings[&eds].bytes <= ROOM_MIN);
    }

    /// While verdicts are off, a type has no more than its share.
    #[test]
    fn without_verdicts_a_share_is_kept() {
        let now = now();
        let large = |one: u8| content("a", &[one; 5000], now);
        let mut earlier = Earlier::default();
        for one in 0..20 {
            earlier.note(&cds(), &large(one + 1), &large(one), 0, settings(0, 1 << 20));
        }
        let kept = earlier.rings[&cds()].bytes;
        assert!(kept <= ROOM_MIN && earlier.bytes == kept, "{kept}");
        for one in 20..40 {
            earlier.note(&cds(), &large(one + 1), &large(one), 0, settings(2, 1 << 20));
        }
        assert!(earlier.bytes > ROOM_MIN && earlier.bytes == earlier.rings[&cds()].bytes);
    }

    /// A secret is kept to stand in for another one, and shown to nobody. What must not be cached is not kept.
    #[test]
    fn secrets_are_shown_to_nobody() {
        let sds = TypeUrl::new("type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret");
        let now = now();
        let mut earlier = Earlier::default();
        earlier.note(
            &sds,
            &content("a", b"2", now),
            &content("a", b"1", now),
            0,
            settings(0, 1000),
        );
        assert!(earlier.rings.is_empty());
        earlier.note(
            &sds,
            &content("a", b"2", now),
            &content("a", b"1", now),
            0,
            settings(2, 1000),
        );
        assert!(earlier.of(&sds).is_empty() && earlier.rings.len() == 1);
        earlier.forget_secrets();
        assert!(earlier.rings.is_empty() && earlier.bytes == 0);
    }

    /// What changes all the time keeps no more than it has.
    #[test]
    fn what_is_small_keeps_little() {
        let now = now();
        for (bytes, most) in [(0, ROOM_MAX), (2 * ROOM_MAX, 2 * ROOM_MAX)] {
            let large = |one: u8| content("a", &vec![one; ROOM_MAX / 4], now);
            let mut earlier = Earlier::default();
            for one in 0..20 {
                earlier.note(&cds(), &large(one + 1), &large(one), bytes, settings(2, 16 * ROOM_MAX));
            }
            assert!(earlier.bytes <= most && earlier.bytes > most / 2, "{}", earlier.bytes);
        }
    }
}
