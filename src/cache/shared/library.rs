// SPDX-License-Identifier: Apache-2.0
//! Answers that many sessions share, each computed once.
//!
//! Owns the answers, which may be lost, within a bound in bytes; and weak references to answers in use, which are found even
//! if there was no room to keep them. Does not hold what somebody subscribes to: the views do.

use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use bytes::Bytes;
use moka::policy::EvictionPolicy;
use moka::sync::Cache;
use parking_lot::Mutex;

use super::interner::Interner;
use super::remembered::Tables;
use super::weak_map::WeakMap;
use classes::Class;
use json::Schemas;
use xds::{
    Answers, Batch, Difference, Name, Objection, Permitted, Rights, Said, Sensitive, State, TypeUrl, Version,
    full_state,
};

/// The store of answers that sessions at the same point share.
pub struct Library {
    /// By what was sent, which also says where the last response ended, and by the state.
    differences: Shared<(u64, u64), Difference>,
    full: Shared<u64, Batch>,
    /// By state.
    doubted: Mutex<WeakMap<u64, State>>,
    /// By state and by the client's rights. Sessions keep these alive: each computes the next one from the one that it has.
    permitted: Shared<(u64, Version), Permitted>,
    /// By state and by the version of what a client sees of it.
    outcomes: Mutex<WeakMap<(u64, Version), State>>,
    rights: Mutex<WeakMap<Version, Rights>>,
    objections: Mutex<WeakMap<u64, Objection>>,
    /// The same by all that a client has said, of what.
    said: Mutex<WeakMap<u64, Objection>>,
    /// By the content.
    sensitive: Shared<u64, Sensitive>,
    schemas: Schemas,
    /// By hash.
    classes: Mutex<WeakMap<u64, Class>>,
    hasher: RandomState,
    texts: Shared<Version, Text>,
    replies: Shared<Version, Text>,
    remembered: Tables,
    names: Interner,
    chunk: AtomicUsize,
}

/// A text, in pieces that are sent one after the other; or the reason why there is none.
pub type Text = Result<Arc<[Bytes]>, String>;

/// How often something was asked for, and how often it had to be computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Uses {
    /// Times that it was asked for.
    pub asked: u64,
    /// Times that it was computed.
    pub computed: u64,
}

/// An answer that nobody asked for in this time is not expected to be needed again.
const IDLE: Duration = Duration::from_secs(30);

impl Library {
    /// Creates a store that keeps about `bytes` of answers, and two of each kind whatever their size; responses hold about
    /// `chunk` bytes.
    #[must_use]
    pub fn new(bytes: u64, chunk: usize) -> Self {
        Self {
            differences: Shared::new(bytes / 2, Difference::weight),
            full: Shared::new(bytes / 2, weight),
            doubted: Mutex::default(),
            permitted: Shared::new(2, |_| 1),
            outcomes: Mutex::default(),
            rights: Mutex::default(),
            objections: Mutex::default(),
            said: Mutex::default(),
            sensitive: Shared::new(2, |_| 1),
            schemas: Schemas::default(),
            classes: Mutex::default(),
            hasher: RandomState::new(),
            texts: Shared::new(bytes / 2, length),
            replies: Shared::new(bytes / 2, length),
            remembered: Tables::default(),
            names: Interner::new(),
            chunk: AtomicUsize::new(chunk),
        }
    }

    /// These say which fields of resources are sensitive.
    #[must_use]
    pub fn reading(self, schemas: Schemas) -> Self {
        Self { schemas, ..self }
    }

    /// Replaces the size of responses. Answers that are kept stay as they are.
    pub fn set_chunk(&self, chunk: usize) {
        self.chunk.store(chunk, Ordering::Relaxed);
    }

    /// Forgets what nobody uses. Nothing depends on when this is called; about every ten seconds is enough.
    pub fn purge(&self) {
        self.differences.purge();
        self.full.purge();
        self.doubted.lock().purge();
        self.permitted.purge();
        self.outcomes.lock().purge();
        self.rights.lock().purge();
        self.objections.lock().purge();
        self.said.lock().purge();
        self.sensitive.purge();
        self.classes.lock().purge();
        self.texts.purge();
        self.replies.purge();
        self.remembered.purge();
        self.names.purge();
    }

    /// How differences and full states were used.
    #[must_use]
    pub fn uses(&self) -> [Uses; 2] {
        [self.differences.uses(), self.full.uses()]
    }

    /// Returns the text of the content with this version; `make` creates it if it is not there.
    pub fn text(&self, version: Version, make: impl FnOnce() -> Text) -> Arc<Text> {
        self.texts.get(version, make)
    }

    /// Returns the reply with the set of resources that has this version. The reply of an empty set is not kept, because the
    /// version of an empty set is the same for all types.
    pub fn reply(&self, version: Version, make: impl FnOnce() -> Text) -> Arc<Text> {
        if version == Version::EMPTY {
            return Arc::new(make());
        }
        self.replies.get(version, make)
    }

    /// How texts and replies were used.
    #[must_use]
    pub fn written(&self) -> [Uses; 2] {
        [self.texts.uses(), self.replies.uses()]
    }

    fn seen(
        &self,
        key: Version,
        state: &Arc<State>,
        rights: &Arc<Rights>,
        before: Option<&Permitted>,
    ) -> Arc<Permitted> {
        let make = || {
            let permitted = state.seen_by(rights, before);
            let seen = self.one(permitted.seen, state);
            Permitted { seen, ..permitted }
        };
        let found = self.permitted.get((state.id(), key), make);
        // Clients choose what decides their rights: a hash that collides must not give one client what is for another one.
        if found.is_for(rights) { found } else { Arc::new(make()) }
    }

    /// Returns the sensitive values of what a response brings. Many clients may reject it at the same time.
    fn sensitive(&self, type_url: &TypeUrl, batch: &Batch) -> Arc<Sensitive> {
        self.sensitive.get(batch.id(), || {
            let bodies = batch.items().iter().map(|item| item.resource.body());
            let (values, complete) = self.schemas.sensitive(type_url.url(), bodies);
            Sensitive::of(values, complete)
        })
    }

    /// Clients that get the same resources share one state, however many different rights there are.
    fn one(&self, seen: Arc<State>, of: &State) -> Arc<State> {
        let key = (of.id(), seen.sum());
        let mut outcomes = self.outcomes.lock();
        outcomes.get(&key).unwrap_or_else(|| {
            outcomes.insert(key, &seen);
            seen
        })
    }

    /// How many names, and how many remembered tables, there are.
    #[must_use]
    pub fn sizes(&self) -> (usize, usize) {
        (self.names.len(), self.remembered.len())
    }
}

/// Returns the shared copy of a value.
fn one_of<K: Eq + Hash, V: PartialEq>(known: &Mutex<WeakMap<K, V>>, key: K, value: V) -> Arc<V> {
    let mut known = known.lock();
    match known.get(&key) {
        Some(found) if *found == value => found,
        Some(_) => Arc::new(value),
        None => {
            let value = Arc::new(value);
            known.insert(key, &value);
            value
        }
    }
}

impl Answers for Library {
    fn difference(&self, from: Option<&Arc<State>>, cursor: Option<&Name>, to: &Arc<State>) -> Arc<Difference> {
        let key = (from.map_or(0, |from| from.id()), to.id());
        self.differences
            .get(key, || Difference::between(from.map(|from| &**from), cursor, to))
    }

    fn full(&self, state: &Arc<State>) -> Arc<Batch> {
        self.full.get(state.id(), || full_state(state))
    }

    fn remembered(&self, state: State) -> Arc<State> {
        self.remembered.one(state)
    }

    fn doubted(&self, state: &Arc<State>) -> Arc<State> {
        let mut known = self.doubted.lock();
        known.get(&state.id()).unwrap_or_else(|| {
            let made = Arc::new(state.doubted());
            known.insert(state.id(), &made);
            made
        })
    }

    fn name(&self, text: &str) -> Name {
        self.names.name(text)
    }

    fn permitted(&self, state: &Arc<State>, rights: &Arc<Rights>, before: Option<&Permitted>) -> Arc<Permitted> {
        self.seen(rights.fingerprint(), state, rights, before)
    }

    fn class(&self, class: Class) -> Arc<Class> {
        one_of(&self.classes, self.hasher.hash_one(&class), class)
    }

    fn rights(&self, rights: Rights) -> Arc<Rights> {
        one_of(&self.rights, rights.fingerprint(), rights)
    }

    fn objection(&self, said: &Said<'_>, rejected: Option<&Arc<Batch>>) -> Arc<Objection> {
        let key = (said.type_url, said.words, rejected.map(|batch| batch.id()));
        let key = self.hasher.hash_one(key);
        if let Some(known) = self.said.lock().get(&key) {
            return known;
        }
        let objection = match rejected {
            Some(batch) => said.without(&self.sensitive(said.type_url, batch)),
            None => said.without(&Sensitive::default()),
        };
        let one = one_of(&self.objections, self.hasher.hash_one(&objection), objection);
        self.said.lock().insert(key, &one);
        one
    }

    fn chunk(&self) -> usize {
        self.chunk.load(Ordering::Relaxed)
    }
}

/// Values that are computed once for all who ask at the same time, and not again while somebody still has them.
struct Shared<K, V> {
    kept: Cache<K, Arc<V>>,
    in_use: Mutex<WeakMap<K, V>>,
    /// The last answer: most sessions that ask at the same time ask for the same one.
    last: ArcSwapOption<(K, Arc<V>)>,
    asked: AtomicU64,
    computed: AtomicU64,
}

impl<K: Copy + Eq + Hash + Send + Sync + 'static, V: Send + Sync + 'static> Shared<K, V> {
    fn new(bytes: u64, weight: fn(&V) -> usize) -> Self {
        // Whatever the bound, the answer that everybody asks for just now must be kept, and a second one beside it.
        let most = bytes / 2;
        let weigh = move |_: &K, value: &Arc<V>| {
            let weight = u64::try_from(weight(value)).unwrap_or(u64::MAX);
            u32::try_from(weight.min(most)).unwrap_or(u32::MAX)
        };
        // Least recently used: a new answer is always admitted.
        let kept = Cache::builder()
            .max_capacity(bytes)
            .weigher(weigh)
            .eviction_policy(EvictionPolicy::lru())
            .time_to_idle(IDLE)
            .build();
        Self {
            kept,
            in_use: Mutex::default(),
            last: ArcSwapOption::empty(),
            asked: AtomicU64::new(0),
            computed: AtomicU64::new(0),
        }
    }

    fn get(&self, key: K, compute: impl FnOnce() -> V) -> Arc<V> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        if let Some(last) = self.last.load().as_ref().filter(|last| last.0 == key) {
            return last.1.clone();
        }
        let value = self.kept.get_with(key, || {
            if let Some(value) = self.in_use.lock().get(&key) {
                return value;
            }
            self.computed.fetch_add(1, Ordering::Relaxed);
            let value = Arc::new(compute());
            self.in_use.lock().insert(key, &value);
            value
        });
        self.last.store(Some(Arc::new((key, value.clone()))));
        value
    }

    fn purge(&self) {
        self.last.store(None);
        self.kept.run_pending_tasks();
        self.in_use.lock().purge();
    }

    fn uses(&self) -> Uses {
        Uses {
            asked: self.asked.load(Ordering::Relaxed),
            computed: self.computed.load(Ordering::Relaxed),
        }
    }
}

fn length(text: &Text) -> usize {
    let length = match text {
        Ok(pieces) => pieces.iter().map(|piece| size_of::<Bytes>() + piece.len()).sum(),
        Err(fault) => fault.len(),
    };
    size_of::<Text>() + length
}

fn weight(batch: &Batch) -> usize {
    let bodies = batch.items().iter().map(|item| item.resource.weight());
    size_of::<Batch>() + bodies.sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use classes::Node;
    use xds::{Access, Caller, TypeUrl, Way};

    #[test]
    fn rights_are_compared_and_not_only_their_hash() {
        let library = Library::new(1, 1);
        let state = Arc::new(State::new(TypeUrl::new("example.Odd")));
        let caller = Caller {
            identity: &[],
            node: &Node::default(),
            way: Way::Delta,
        };
        let rights = Access::new(Vec::new(), false).rights(&caller).unwrap();
        for rights in [Rights::none(), Arc::new(rights.unwrap())] {
            assert!(library.seen(Version::EMPTY, &state, &rights, None).is_for(&rights));
        }
    }
}
