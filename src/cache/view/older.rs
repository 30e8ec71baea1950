// SPDX-License-Identifier: Apache-2.0
//! Older content that clients of a view go on using, because they reject what came after it, and what they used until a moment ago.
//!
//! Owns who keeps which content, for how long that counts, and in which order it is offered to others (K-37). Does not know why it is kept.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use xds::{Brief, Name, Older, Resource, TypeUrl, Version};

/// So long content can be offered that nobody uses any more.
pub(super) const KEPT: Duration = Duration::from_secs(10 * 60);
/// So long what a content names is kept for those who use it, from the first of them on.
const REFERS: Duration = Duration::from_secs(60 * 60);
/// A client that has gone counts for at least as long.
const LINGER_MIN: Duration = Duration::from_secs(60);
/// So many clients that have gone are remembered of a content.
const GONE_MAX: usize = 1024;

/// The older contents of one view.
#[derive(Default)]
pub(super) struct Stock {
    /// By type and name, the oldest first.
    all: BTreeMap<(TypeUrl, Name), Vec<Reserve>>,
    /// Whether other contents refer to what they name than at the last call of [`Stock::take_roots`].
    changed: bool,
}

/// One content.
struct Reserve {
    content: Arc<Resource>,
    /// Since when clients use it, or none does any more.
    since: Instant,
    /// The seats of those who use it.
    seats: BTreeSet<u32>,
    /// The node ids of those who did, and until when they count; nothing: that is not known yet.
    gone: BTreeMap<Arc<str>, Option<Instant>>,
    /// Whether it refers to what it names.
    refers: bool,
}

impl Reserve {
    fn is_used(&self) -> bool {
        !self.seats.is_empty() || !self.gone.is_empty()
    }

    fn is_root(&self) -> bool {
        self.refers && self.is_used()
    }
}

impl Stock {
    /// Whether there is nothing.
    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The client at this seat uses this content.
    pub(super) fn keep(&mut self, type_url: &TypeUrl, content: &Arc<Resource>, seat: u32, id: &str, now: Instant) {
        let key = (type_url.clone(), content.name().clone());
        let of_name = self.all.entry(key).or_default();
        let version = content.version();
        let at = of_name.iter().position(|reserve| reserve.content.version() == version);
        let at = at.unwrap_or_else(|| {
            of_name.push(Reserve {
                content: Arc::new(content.twin()),
                since: now,
                seats: BTreeSet::new(),
                gone: BTreeMap::new(),
                refers: true,
            });
            of_name.len() - 1
        });
        let Some(reserve) = of_name.get_mut(at) else { return };
        if !reserve.is_used() {
            (reserve.since, reserve.refers) = (now, true);
            self.changed = true;
        }
        reserve.gone.remove(id);
        reserve.seats.insert(seat);
    }

    /// The client at this seat uses no other content of the name than this: it has accepted another one, was told that the name is gone, or
    /// has given it up.
    pub(super) fn leave_others(&mut self, key: &(TypeUrl, Name), seat: u32, used: Option<Version>, now: Instant) {
        let others = self.all.get_mut(key).into_iter().flatten();
        for reserve in others.filter(|reserve| Some(reserve.content.version()) != used) {
            if reserve.seats.remove(&seat) && !reserve.is_used() {
                reserve.since = now;
                self.changed |= reserve.refers;
            }
        }
    }

    /// The client at this seat has gone. It may come back.
    pub(super) fn go(&mut self, key: &(TypeUrl, Name), seat: u32, id: &Arc<str>) {
        for reserve in self.all.get_mut(key).into_iter().flatten() {
            if reserve.seats.remove(&seat) && (reserve.gone.len() < GONE_MAX || !reserve.is_used()) {
                reserve.gone.insert(id.clone(), None);
            }
        }
    }

    /// Returns the content with this version.
    pub(super) fn find(&self, key: &(TypeUrl, Name), version: Brief) -> Option<Arc<Resource>> {
        let mut of_name = self.all.get(key)?.iter();
        let found = of_name.find(|reserve| Brief::from(reserve.content.version()) == version)?;
        Some(found.content.clone())
    }

    /// Returns what a client with this node id used when it was last here.
    pub(super) fn left_by(&self, key: &(TypeUrl, Name), id: &str) -> Option<Arc<Resource>> {
        let mut of_name = self.all.get(key)?.iter().rev();
        let found = of_name.find(|reserve| reserve.gone.contains_key(id))?;
        Some(found.content.clone())
    }

    /// Returns the contents of a name.
    pub(super) fn of_name(&self, key: &(TypeUrl, Name)) -> impl Iterator<Item = &Arc<Resource>> {
        self.all.get(key).into_iter().flatten().map(|reserve| &reserve.content)
    }

    /// How many clients use a content.
    pub(super) fn users(&self, key: &(TypeUrl, Name), version: Version) -> usize {
        let mut of_name = self.all.get(key).into_iter().flatten();
        let found = of_name.find(|reserve| reserve.content.version() == version);
        found.map_or(0, |reserve| reserve.seats.len() + reserve.gone.len())
    }

    /// A person wants a name to have no older content any more. Returns whether it had.
    pub(super) fn release(&mut self, key: &(TypeUrl, Name)) -> bool {
        let had = self.all.remove(key).is_some();
        self.changed |= had;
        had
    }

    /// Time has passed. What nobody uses any more has room for so many bytes. Returns the contents that do not refer to what they name any
    /// more, although they are used.
    pub(super) fn expire(&mut self, linger: Duration, room: usize, now: Instant) -> Vec<(TypeUrl, Arc<Resource>)> {
        let (mut over, mut unused) = (Vec::new(), Vec::new());
        for (key, of_name) in &mut self.all {
            of_name.retain_mut(|reserve| {
                let used = reserve.is_used();
                reserve.gone.retain(|_, until| {
                    let until = until.get_or_insert(now + linger.max(LINGER_MIN));
                    *until > now
                });
                if used && !reserve.is_used() {
                    reserve.since = now;
                    self.changed |= reserve.refers;
                } else if reserve.is_root() && reserve.since + REFERS <= now {
                    reserve.refers = false;
                    self.changed = true;
                    over.push((key.0.clone(), reserve.content.clone()));
                }
                let stays = reserve.is_used() || reserve.since + KEPT > now;
                if stays && !reserve.is_used() {
                    unused.push((reserve.since, reserve.content.weight()));
                }
                stays
            });
        }
        unused.sort_unstable();
        let mut bytes: usize = unused.iter().map(|(_, bytes)| bytes).sum();
        let mut oldest = unused.into_iter();
        let mut before = None;
        while bytes > room
            && let Some((since, weight)) = oldest.next()
        {
            bytes -= weight;
            before = Some(since);
        }
        let is_over = |reserve: &Reserve| !reserve.is_used() && before.is_some_and(|before| reserve.since <= before);
        self.all.retain(|_, of_name| {
            of_name.retain(|reserve| !is_over(reserve));
            !of_name.is_empty()
        });
        over
    }

    /// Whether other contents refer to what they name than at the last call of [`Stock::take_roots`].
    pub(super) const fn has_changed(&self) -> bool {
        self.changed
    }

    /// Returns the contents that refer to what they name, if these are others than at the last call.
    pub(super) fn take_roots(&mut self) -> Option<Vec<Older>> {
        if !std::mem::take(&mut self.changed) {
            return None;
        }
        Some(self.told(Reserve::is_root, |_| None))
    }

    /// Returns everything, with the node ids of those who use it. `id` returns that of a client.
    pub(super) fn all(&self, id: impl Fn(u32) -> Option<Arc<str>>) -> Vec<Older> {
        self.told(|_| true, id)
    }

    fn told(&self, which: impl Fn(&Reserve) -> bool, id: impl Fn(u32) -> Option<Arc<str>>) -> Vec<Older> {
        let all = self.all.iter();
        let all = all.flat_map(|((type_url, _), of_name)| of_name.iter().map(move |reserve| (type_url, reserve)));
        let told = all
            .filter(|(_, reserve)| which(reserve))
            .map(|(type_url, reserve)| Older {
                type_url: type_url.clone(),
                content: reserve.content.clone(),
                since: reserve.since,
                refers: reserve.is_root(),
                keepers: reserve
                    .seats
                    .iter()
                    .filter_map(|seat| id(*seat))
                    .chain(reserve.gone.keys().cloned())
                    .collect(),
            });
        told.collect()
    }

    /// Takes over what an earlier run of the relay had.
    pub(super) fn restore(&mut self, older: &[Older]) {
        for one in older {
            let key = (one.type_url.clone(), one.name().clone());
            let of_name = self.all.entry(key).or_default();
            if of_name
                .iter()
                .any(|reserve| reserve.content.version() == one.content.version())
            {
                continue;
            }
            of_name.push(Reserve {
                content: one.content.clone(),
                since: one.since,
                seats: BTreeSet::new(),
                gone: one.keepers.iter().map(|id| (id.clone(), None)).collect(),
                refers: true,
            });
            self.changed = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use xds::ResourceParts;

    const SECOND: Duration = Duration::from_secs(1);

    #[expect(clippy::disallowed_methods, reason = "any instant will do")]
    fn now() -> Instant {
        Instant::now()
    }

    fn cds() -> TypeUrl {
        TypeUrl::new("type.googleapis.com/envoy.config.cluster.v3.Cluster")
    }

    fn content(body: &[u8], received: Instant) -> Arc<Resource> {
        let parts = ResourceParts {
            type_url: &cds(),
            name: "a".into(),
            aliases: Vec::new(),
            passed_on: &[],
            body,
            endpoints: None,
            received,
        };
        Arc::new(Resource::new(parts, 0))
    }

    fn key() -> (TypeUrl, Name) {
        (cds(), "a".into())
    }

    fn roots(stock: &Stock) -> usize {
        stock.all(|_| None).iter().filter(|one| one.refers).count()
    }

    /// The hour begins with the first client and is counted once, whoever comes and goes; the content stays as long as one uses it, and ten
    /// minutes longer.
    #[test]
    fn an_hour_for_all() {
        let (start, linger) = (now(), SECOND);
        let (mut stock, one) = (Stock::default(), content(b"1", start));
        stock.keep(&cds(), &one, 1, "a", start);
        stock.keep(&cds(), &one, 2, "b", start + REFERS / 2);
        assert_eq!(stock.take_roots().map(|roots| roots.len()), Some(1));
        stock.leave_others(&key(), 1, None, start + REFERS / 2);
        assert!(stock.take_roots().is_none(), "another one uses it");
        assert!(stock.expire(linger, 1 << 20, start + REFERS - SECOND).is_empty());
        assert_eq!(stock.expire(linger, 1 << 20, start + REFERS).len(), 1);
        assert_eq!((roots(&stock), stock.users(&key(), one.version())), (0, 1));
        assert_eq!(stock.take_roots().map(|roots| roots.len()), Some(0));
        // It is said once.
        assert!(stock.expire(linger, 1 << 20, start + 2 * REFERS).is_empty());
        let end = start + 2 * REFERS;
        stock.leave_others(&key(), 2, None, end);
        assert!(stock.expire(linger, 1 << 20, end + KEPT - SECOND).is_empty());
        assert_eq!(stock.of_name(&key()).count(), 1);
        assert!(stock.expire(linger, 1 << 20, end + KEPT).is_empty() && stock.is_empty());
    }

    /// Who has gone counts for a minute at least. Whoever comes back with its node id uses it again, in the same hour.
    #[test]
    fn who_has_gone_may_come_back() {
        let (start, linger) = (now(), SECOND);
        let (mut stock, one) = (Stock::default(), content(b"1", start));
        stock.keep(&cds(), &one, 1, "a", start);
        stock.go(&key(), 1, &Arc::from("a"));
        assert!(stock.expire(linger, 1 << 20, start).is_empty());
        assert_eq!((roots(&stock), stock.left_by(&key(), "a").is_some()), (1, true));
        assert!(stock.left_by(&key(), "b").is_none());
        stock.keep(&cds(), &one, 7, "a", start + LINGER_MIN / 2);
        assert!(stock.left_by(&key(), "a").is_none());
        assert!(stock.expire(linger, 1 << 20, start + 2 * LINGER_MIN).is_empty());
        assert_eq!(roots(&stock), 1);
        assert_eq!(stock.expire(linger, 1 << 20, start + REFERS).len(), 1);
        stock.go(&key(), 7, &Arc::from("a"));
        for at in [start + REFERS, start + REFERS + LINGER_MIN] {
            assert!(stock.expire(linger, 1 << 20, at).is_empty());
        }
        assert_eq!(
            (stock.users(&key(), one.version()), stock.of_name(&key()).count()),
            (0, 1)
        );
    }

    /// What nobody uses has a bound; what somebody uses stays.
    #[test]
    fn unused_content_has_a_bound() {
        let start = now();
        let mut stock = Stock::default();
        let all: Vec<_> = (0..4_u8).map(|one| content(&[one; 1000], start)).collect();
        for (at, one) in (0..).zip(&all) {
            stock.keep(&cds(), one, at, "a", start + SECOND * at);
        }
        for seat in 0..3 {
            stock.leave_others(&key(), seat, None, start + SECOND * (10 + seat));
        }
        let room = all[0].weight() + 1;
        assert!(stock.expire(SECOND, room, start + SECOND * 20).is_empty());
        let left: Vec<_> = stock.of_name(&key()).map(|one| one.version()).collect();
        assert_eq!(left, [all[2].version(), all[3].version()]);
        assert!(stock.release(&key()) && !stock.release(&key()));
    }

    /// A later run goes on in the same hour.
    #[test]
    fn what_a_later_run_begins_with() {
        let start = now();
        let (mut stock, one) = (Stock::default(), content(b"1", start));
        stock.keep(&cds(), &one, 1, "a", start);
        let written = stock.all(|_| Some(Arc::from("a")));
        let mut later = Stock::default();
        later.restore(&written);
        assert_eq!((roots(&later), later.left_by(&key(), "a").is_some()), (1, true));
        later.keep(&cds(), &one, 9, "a", start + SECOND);
        assert_eq!(later.expire(SECOND, 1 << 20, start + REFERS).len(), 1);
    }
}
