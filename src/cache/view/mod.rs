//! The content of one server for one class of clients.
//!
//! Owns the current cut, who is told when it changes, and what is requested upstream. Knows nothing of the protocol on either
//! side.

mod asked;
mod condemned;
mod earlier;
mod ended;
mod guarded;
mod pressure;
mod rejected;
mod relay_chain;
mod replaced;
mod restored;
mod seat;
mod server_state;
mod wants;
mod words;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::task::Waker;
use std::time::{Duration, Instant};

use arc_swap::{ArcSwap, ArcSwapOption};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{Notify, mpsc};

pub use asked::Respondents;
use condemned::Verdicts;
pub use earlier::EarlierContent;
use guarded::Guarded;
pub use pressure::Summary;
use rejected::Rejected;
use relay_chain::RelayChain;
use replaced::Replaced;
pub use restored::Knowledge;
pub use seat::Seat;
pub use words::WordsQuestion;

use crate::Claims;
use crate::docket::Docket;
use crate::interest::{Leases, Set, Sets, Woken, Written};
use crate::routes::WakeOnFailure;
use crate::vacancy::Vacancy;
use classes::Class;
use xds::{Changes, Cut, Name, ServerState, Slot, Target, TypeUrl};

/// One view.
///
/// There is one writer, its upstream task. In its turn it takes what is wanted ([`View::take_wants`]), and publishes what
/// changes ([`View::publish`]); its next turn is when [`View::changed`] returns or [`View::poll_timeout`] is due. Any number of
/// readers take the current cut without a lock. Nothing is queued: an interest that ends before the writer has seen its
/// beginning leaves no trace, and all changes that a session has not looked at are one change.
pub struct View {
    class: Class,
    server: usize,
    wake_on_failure: Mutex<WakeOnFailure>,
    /// The most bytes of old content that sessions may keep in memory; 0: no bound.
    pinned_bytes_max: AtomicUsize,
    cut: ArcSwap<Cut>,
    /// What an earlier run of the relay knew, as long as it may be needed.
    restored: ArcSwapOption<Cut>,
    generation: AtomicU64,
    leases: Leases,
    written: Written,
    sets: Sets,
    /// Numbers of the sessions whose leases have changed since their sets were settled.
    unsettled: Mutex<Vec<u32>>,
    /// Large sets that no session has any more. The writer ends their leases.
    ending: Mutex<Vec<Arc<Set>>>,
    writer: Mutex<Replaced>,
    interest: Notify,
    /// Whether [`Self::take_wants`] has left some for its next call.
    behind: AtomicBool,
    relay_chain: RelayChain,
    rejected: Rejected,
    verdicts: Verdicts,
    /// Where views with rejections are listed.
    docket: Arc<Docket>,
    guarded: Guarded,
    closed: AtomicBool,
    /// Whether another server has replaced this one since its last stream began.
    superseded: AtomicBool,
    /// The generation at the last call of [`Self::relieve`].
    checked: AtomicU64,
    /// The way of questions to the writer, if it takes any.
    words: Mutex<Option<mpsc::Sender<WordsQuestion>>>,
}

/// The bounds and the times of a view.
#[derive(Clone, Copy, Debug)]
pub struct ViewSettings {
    /// How long a target is kept that nobody wants any more (K-01).
    pub linger: Duration,
    /// The most targets that can be wanted at the same time (`limits.names_per_view`); 0: no bound.
    pub names_per_view: usize,
    /// The most bytes of old content that sessions may keep in memory (`limits.pinned_bytes_per_view`); 0: no bound.
    pub pinned_bytes_per_view: usize,
}

/// Which sessions must look again because of one published change.
enum Ring {
    /// All that want anything of the type.
    Everybody(TypeUrl),
    /// Those that want one of the names and, if `wildcard`, those that want the wildcard.
    Some {
        type_url: TypeUrl,
        names: Vec<Name>,
        wildcard: bool,
    },
}

/// The most pairs of set and name that are collected before bells ring, to bound the memory for them.
const RING_AT_ONCE: usize = 1 << 16;

impl View {
    /// Creates a view of the only server, in which nothing is known.
    #[must_use]
    pub fn new(class: Class, settings: ViewSettings) -> Arc<Self> {
        Self::of(
            0,
            WakeOnFailure::Nobody,
            class,
            settings,
            (Arc::default(), Arc::default()),
        )
    }

    /// Creates a view of this server, in which nothing is known.
    pub(crate) fn of(
        server: usize,
        wake_on_failure: WakeOnFailure,
        class: Class,
        settings: ViewSettings,
        (vacancy, docket): (Arc<Vacancy>, Arc<Docket>),
    ) -> Arc<Self> {
        Arc::new(Self {
            class,
            server,
            wake_on_failure: Mutex::new(wake_on_failure),
            pinned_bytes_max: AtomicUsize::new(settings.pinned_bytes_per_view),
            cut: ArcSwap::default(),
            restored: ArcSwapOption::empty(),
            generation: AtomicU64::new(0),
            leases: Leases::new(settings.linger, settings.names_per_view, vacancy),
            written: Written::default(),
            sets: Sets::default(),
            unsettled: Mutex::default(),
            writer: Mutex::default(),
            interest: Notify::new(),
            behind: AtomicBool::new(false),
            relay_chain: RelayChain::default(),
            rejected: Rejected::default(),
            verdicts: Verdicts::default(),
            docket,
            guarded: Guarded::default(),
            closed: AtomicBool::new(false),
            superseded: AtomicBool::new(false),
            checked: AtomicU64::new(0),
            ending: Mutex::default(),
            words: Mutex::default(),
        })
    }

    /// Replaces the bounds and the times.
    pub(crate) fn set(&self, settings: ViewSettings) {
        self.leases.set(settings.linger, settings.names_per_view);
        self.pinned_bytes_max
            .store(settings.pinned_bytes_per_view, Ordering::Relaxed);
    }

    /// The class of clients that share it.
    #[must_use]
    pub const fn class(&self) -> &Class {
        &self.class
    }

    /// The number of the server that its content comes from.
    #[must_use]
    pub const fn server(&self) -> usize {
        self.server
    }

    /// Returns what is known now.
    #[must_use]
    pub fn cut(&self) -> Arc<Cut> {
        self.cut.load_full()
    }

    /// The state of the server now.
    #[must_use]
    pub fn server_state(&self) -> ServerState {
        self.cut.load().server_state()
    }

    /// How many times something was published.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Relaxed)
    }

    /// How many sessions there are.
    #[must_use]
    pub fn seats(&self) -> usize {
        self.sets.read().len()
    }

    /// Returns the claims of the connection to which the view counts: that of its first session. None if there is no session.
    pub(crate) fn claims(&self) -> Option<Arc<Claims>> {
        let sets = self.sets.read();
        sets.iter().next().map(|(_, seated)| seated.claims().clone())
    }

    /// Whether there is no session, and nothing is kept for one that might come back.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.sets.read().len() == 0 && self.leases.count().1 == 0
    }

    /// When the writer must call [`View::take_wants`] again at the latest.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.leases.poll_timeout()
    }

    /// Returns how many types that are in no table wait until upstream is asked for them.
    #[must_use]
    pub fn waiting_types(&self) -> usize {
        self.leases.waiting_types()
    }

    /// Waits until it is the writer's turn again. There may be nothing to do.
    pub async fn changed(&self) {
        self.interest.notified().await;
    }

    /// Whether the view has ended, and with it the writer's work.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// The writer publishes changes. K-20: all of them become visible at once, and only then the sessions are woken: some at a
    /// time by the caller, or all at once when the result is dropped.
    pub fn publish(&self, changes: &[Changes]) -> Woken {
        self.publish_by(changes, Cut::with)
    }

    fn publish_by(&self, changes: &[Changes], apply: fn(&Cut, &Changes) -> (Cut, Vec<Name>)) -> Woken {
        let mut replaced = self.writer.lock();
        let kept = self.docket.settings();
        let before = self.cut.load_full();
        let generation = self.generation() + 1;
        let mut newest = None;
        let mut rings = Vec::new();
        for change in changes {
            let cut = newest.as_ref().unwrap_or(&*before);
            let (next, mut names) = apply(cut, change);
            let flipped = flags(cut.slot(&change.type_url)) != flags(next.slot(&change.type_url));
            // K-09: equal content is no change, and keeps the very state that sessions hold.
            if names.is_empty() && !flipped {
                continue;
            }
            replaced.note(cut, change, generation, kept);
            newest = Some(next);
            let type_url = change.type_url.clone();
            // a resource without a name answers to all names.
            let nameless = type_url.traits().nameless && names.iter().any(Name::is_empty);
            rings.push(if flipped || nameless {
                Ring::Everybody(type_url)
            } else {
                // C-22: with a whole collection, it is known which of its names do not exist.
                let collections = names.iter().filter(|name| name.is_collection()).cloned().collect();
                names.extend(self.leases.within(&type_url, &collections));
                let wildcard = change.wildcard;
                Ring::Some {
                    type_url,
                    names,
                    wildcard,
                }
            });
        }
        match newest {
            Some(cut) => self.finish(replaced, cut, &rings),
            None => Woken::new(Vec::new()),
        }
    }

    /// Ends the view and tells its writer.
    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::Release);
        self.interest.notify_one();
    }

    /// Publishes the new cut, then rings the bells of the sessions that it concerns. They are woken with no lock held.
    fn finish(&self, replaced: MutexGuard<'_, Replaced>, cut: Cut, rings: &[Ring]) -> Woken {
        let mut woken = Vec::new();
        if rings.is_empty() {
            return Woken::new(woken);
        }
        let generation = self.generation() + 1;
        self.cut.store(Arc::new(cut));
        self.generation.store(generation, Ordering::Relaxed);
        self.verdicts.renew(&self.cut());
        drop(replaced);
        self.wake_onlookers();
        for ring in rings {
            match ring {
                Ring::Everybody(type_url) => self.ring_everybody(type_url, generation, &mut woken),
                Ring::Some {
                    type_url,
                    names,
                    wildcard,
                } => self.ring_some(type_url, names, *wildcard, generation, &mut woken),
            }
        }
        Woken::new(woken)
    }

    fn ring_everybody(&self, type_url: &TypeUrl, generation: u64, woken: &mut Vec<Waker>) {
        let sets = self.sets.read();
        let mut concerned = vec![false; sets.end()];
        self.leases.everyone(type_url, |set| {
            if let Some(concerned) = concerned.get_mut(set as usize) {
                *concerned = true;
            }
        });
        let concerned = (0..).zip(concerned).filter(|(_, concerned)| *concerned);
        let members = concerned.flat_map(|(set, _)| sets.members(set));
        woken.extend(members.filter_map(|seated| seated.bell.ring_all(type_url, generation)));
    }

    fn ring_some(&self, type_url: &TypeUrl, names: &[Name], wildcard: bool, generation: u64, woken: &mut Vec<Waker>) {
        let wildcard = wildcard.then_some((usize::MAX, Target::Wildcard));
        // C-22: a session that waits for a collection waits for all its members.
        let itself_and_all = |name: &Name| std::iter::once(name.clone()).chain(name.collection());
        let names_at = names.iter().enumerate();
        let names_at = names_at.flat_map(|(at, name)| itself_and_all(name).map(move |name| (at, Target::Name(name))));
        let mut targets = wildcard.into_iter().chain(names_at).peekable();
        while targets.peek().is_some() {
            // A session that moves to another set during the search would be missed: with this lock, none moves.
            let sets = self.sets.read();
            let mut concerned = Vec::new();
            for (at, target) in targets.by_ref() {
                self.leases.waiters(type_url, &target, |set| concerned.push((set, at)));
                if concerned.len() >= RING_AT_ONCE {
                    break;
                }
            }
            concerned.sort_unstable();
            concerned.dedup();
            for concerned in concerned.chunk_by(|a, b| a.0 == b.0) {
                let set = concerned.first().map_or(u32::MAX, |(set, _)| *set);
                let (members, wanted) = (sets.members(set), sets.set(set).map_or(0, Set::len));
                let names = || concerned.iter().filter_map(|(_, at)| names.get(*at));
                woken.extend(members.filter_map(|seated| seated.bell.ring(type_url, names(), wanted, generation)));
            }
        }
    }
}

/// What concerns all sessions that want anything of a type: it decides what clients are told of names that do not exist.
fn flags(slot: Option<&Slot>) -> [bool; 4] {
    slot.map_or([false; 4], |slot| {
        let whole = slot.wildcard.as_ref();
        let (stale, complete) = whole.map_or((false, false), |state| (state.stale(), state.complete()));
        [slot.answered, slot.named.stale(), stale, complete]
    })
}
