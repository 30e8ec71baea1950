// SPDX-License-Identifier: Apache-2.0
//! The parts of one connection that have something to do.
//!
//! A connection is one task. Its transport and its calls are parts of it, each with a waker of its own, so that a turn polls only
//! the parts that were woken. Owns that no wake is lost, and that each part that was woken has its turn before any other comes
//! round again. Knows nothing of what a part does.

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Wake, Waker};

use parking_lot::Mutex;

/// The parts that were woken. If there are any outside of a turn, the task was woken too.
#[derive(Debug, Default)]
pub(super) struct WokenParts {
    /// A bit for each of the first [`BITS`] parts that was woken, and the bits [`LISTED`] and [`WITHIN`].
    woken: AtomicU64,
    /// The other parts that were woken, in the order of their wakes.
    others: Mutex<VecDeque<u32>>,
    task: Mutex<Option<Waker>>,
}

/// Those of the woken parts that come before all that are woken later. What one turn leaves of it, the next turn begins with.
#[derive(Debug, Default)]
pub(super) struct WokenRound {
    /// The bits that the last turn left.
    left: u64,
    /// How many parts at the front of [`WokenParts::others`] are of this round, once the first of them was returned.
    listed: usize,
}

/// One turn of the task. The task asks for each next part.
#[derive(Debug)]
pub(super) struct Turn<'a> {
    agenda: &'a Arc<WokenParts>,
    round: &'a mut WokenRound,
    /// Bits taken from [`WokenParts::woken`] whose parts were not returned yet.
    taken: u64,
    over: bool,
}

/// The handle of a part, with its waker.
#[derive(Debug)]
pub(super) struct Ear {
    part: Arc<WokenPart>,
    waker: Waker,
}

/// One part, which is woken at most once before it is polled.
#[derive(Debug)]
struct WokenPart {
    agenda: Arc<WokenParts>,
    number: u32,
    /// Whether it is in [`WokenParts::others`].
    listed: AtomicBool,
}

/// The part that comes first in each turn.
pub(super) const FIRST: u32 = 0;
/// How many parts have a bit. Nearly every connection has fewer parts.
const BITS: u32 = 62;
/// The bit that says that [`WokenParts::others`] is not empty.
const LISTED: u64 = 1 << BITS;
/// The bit that says that a turn is going on.
const WITHIN: u64 = LISTED << 1;

impl WokenParts {
    /// Creates the part with this number.
    pub(super) fn part(self: &Arc<Self>, number: u32) -> Ear {
        let part = Arc::new(WokenPart {
            agenda: self.clone(),
            number,
            listed: AtomicBool::new(false),
        });
        Ear {
            waker: Waker::from(part.clone()),
            part,
        }
    }

    /// Begins a turn of the task, with what the turn before has left of its last round.
    pub(super) fn begin<'a>(self: &'a Arc<Self>, round: &'a mut WokenRound, task: &Waker) -> Turn<'a> {
        match &mut *self.task.lock() {
            Some(known) => known.clone_from(task),
            none => *none = Some(task.clone()),
        }
        self.woken.fetch_or(WITHIN, Ordering::AcqRel);
        let mut taken = std::mem::take(&mut round.left);
        if taken != 0 {
            taken |= self.woken.fetch_and(!(1 << FIRST), Ordering::AcqRel) & 1 << FIRST;
        }
        Turn {
            agenda: self,
            round,
            taken,
            over: false,
        }
    }

    fn note(&self, bit: u64) {
        if self.woken.fetch_or(bit, Ordering::AcqRel) == 0 {
            self.wake();
        }
    }

    /// Wakes the task after the runtime has polled its sockets. It does not poll them while tasks keep waking themselves.
    fn come_back(&self) {
        if let Some(task) = &*self.task.lock() {
            let mut context = Context::from_waker(task);
            let _ = pin!(tokio::task::yield_now()).poll(&mut context);
        }
    }

    /// Wakes the task. The lock may be held, because the waker of a task only puts the task in a queue.
    fn wake(&self) {
        if let Some(task) = &*self.task.lock() {
            task.wake_by_ref();
        }
    }
}

impl Turn<'_> {
    /// Creates the part with this number.
    pub(super) fn part(&self, number: u32) -> Ear {
        self.agenda.part(number)
    }

    /// Returns the next part, for which [`Ear::begin`] must be called then. If there is none, the turn is over.
    #[inline]
    pub(super) fn next(&mut self) -> Option<u32> {
        let woken = &self.agenda.woken;
        while self.taken == 0 {
            self.taken = woken.fetch_and(WITHIN, Ordering::AcqRel) & !WITHIN;
            let none = || woken.compare_exchange(WITHIN, 0, Ordering::AcqRel, Ordering::Acquire);
            if self.taken == 0 && none().is_ok() {
                self.over = true;
                return None;
            }
        }
        let number = self.taken.trailing_zeros();
        if number < BITS {
            self.taken &= self.taken - 1;
            return Some(number);
        }
        self.listed()
    }

    fn listed(&mut self) -> Option<u32> {
        let mut others = self.agenda.others.lock();
        let round = &mut *self.round;
        if round.listed == 0 {
            round.listed = others.len();
        }
        let other = others.pop_front();
        round.listed = round.listed.saturating_sub(1);
        if round.listed == 0 {
            self.taken = 0;
            // The others were woken after this round had begun.
            if !others.is_empty() {
                self.agenda.woken.fetch_or(LISTED, Ordering::AcqRel);
            }
        }
        drop(others);
        other.or_else(|| self.next())
    }
}

impl Drop for Turn<'_> {
    /// Wakes the task for another turn if there is more to do.
    #[inline]
    fn drop(&mut self) {
        if self.over {
            return;
        }
        self.round.left = self.taken;
        let woken = self.agenda.woken.fetch_and(!WITHIN, Ordering::AcqRel) & !WITHIN;
        if woken != 0 || self.taken != 0 {
            self.agenda.come_back();
        }
    }
}

impl Ear {
    /// Returns the waker to poll the part with. To be called before the part is polled: each event from here on wakes it again.
    pub(super) fn begin(&self) -> &Waker {
        if self.part.number >= BITS {
            self.part.listed.swap(false, Ordering::AcqRel);
        }
        &self.waker
    }

    /// Returns the waker of the part.
    pub(super) const fn waker(&self) -> &Waker {
        &self.waker
    }

    /// Wakes the part.
    pub(super) fn wake(&self) {
        self.part.wake_by_ref();
    }
}

impl Wake for WokenPart {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.number < BITS {
            self.agenda.note(1 << self.number);
        } else if !self.listed.swap(true, Ordering::AcqRel) {
            self.agenda.others.lock().push_back(self.number);
            self.agenda.note(LISTED);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Release);
        }
    }

    /// Holds for parts with a bit and for parts in the list.
    #[test]
    fn who_is_woken_has_a_turn_and_only_wakes_from_elsewhere_make_one() {
        for (one, two) in [(0, 1), (BITS, BITS + 1), (3, 70)] {
            let count = Arc::new(Count::default());
            let task = Waker::from(count.clone());
            let turns = || count.0.swap(0, Ordering::Relaxed);
            let (agenda, mut round) = (Arc::new(WokenParts::default()), WokenRound::default());
            let parts = [one, two].map(|number| agenda.part(number));
            assert_eq!(agenda.begin(&mut round, &task).next(), None, "nobody was woken");
            for _ in 0..2 {
                parts[1].wake();
            }
            assert_eq!(turns(), 1, "once, however often");
            let mut turn = agenda.begin(&mut round, &task);
            assert_eq!(turn.next(), Some(two));
            let _ = parts[1].begin();
            parts[0].wake();
            parts[1].wake();
            assert_eq!(turns(), 0, "it is found in this turn");
            assert_eq!(turn.next(), Some(one));
            let _ = parts[0].begin();
            drop(turn);
            assert_eq!(turns(), 1, "there is more to do");
            let mut turn = agenda.begin(&mut round, &task);
            assert_eq!(turn.next(), Some(two));
            let _ = parts[1].begin();
            assert_eq!(turn.next(), None);
            drop(turn);
            parts[0].wake();
            assert_eq!(turns(), 1, "after the turn");
            let mut turn = agenda.begin(&mut round, &task);
            assert_eq!(turn.next(), Some(one));
            let _ = parts[0].begin();
            drop(turn);
            assert_eq!(turns(), 0, "there is no more to do");
        }
    }

    /// All parts always have something to do, and a turn is shorter than a round.
    #[test]
    fn nobody_comes_round_again_before_all_others_had_their_turn() {
        const PARTS: u32 = 1000;
        let (agenda, mut round) = (Arc::new(WokenParts::default()), WokenRound::default());
        let parts: Vec<Ear> = (0..PARTS).map(|number| agenda.part(number)).collect();
        parts.iter().for_each(Ear::wake);
        let mut turns = vec![0_u32; PARTS as usize];
        for _ in 0..1000 {
            let mut turn = agenda.begin(&mut round, Waker::noop());
            for at in 0..128 {
                let number = turn.next().unwrap();
                assert!(at > 0 || number == FIRST, "{number} came before the first");
                let _ = parts[number as usize].begin();
                parts[number as usize].wake();
                turns[number as usize] += 1;
            }
            let others = &turns[1..];
            let (least, most) = (others.iter().min().unwrap(), others.iter().max().unwrap());
            assert!(most - least <= 1, "{least} and {most} turns");
        }
    }

    /// With wakes on one thread and turns on another, every woken part is polled.
    #[test]
    fn no_wake_is_lost() {
        const WAKES: usize = 20_000;
        let (agenda, mut round) = (Arc::new(WokenParts::default()), WokenRound::default());
        let parts = [0, 1, 63, 64].map(|number| (number, agenda.part(number)));
        let made: [AtomicUsize; 4] = Default::default();
        let count = Arc::new(Count::default());
        let task = Waker::from(count.clone());
        let seen = std::thread::scope(|scope| {
            scope.spawn(|| {
                for wake in 0..WAKES {
                    made[wake % 4].fetch_add(1, Ordering::Release);
                    parts[wake % 4].1.wake();
                }
            });
            let (mut seen, mut turns) = ([0; 4], usize::MAX);
            #[expect(clippy::disallowed_methods, reason = "a deadline in a test")]
            let begun = std::time::Instant::now();
            while seen.iter().sum::<usize>() < WAKES {
                // As a runtime does: no turn without a wake.
                if count.0.load(Ordering::Acquire) == turns {
                    assert!(begun.elapsed().as_secs() < 60, "{seen:?} of {WAKES}");
                    std::thread::yield_now();
                    continue;
                }
                turns = count.0.load(Ordering::Acquire);
                let mut turn = agenda.begin(&mut round, &task);
                for _ in 0..3 {
                    let Some(number) = turn.next() else { break };
                    let at = parts.iter().position(|(known, _)| *known == number).unwrap();
                    let _ = parts[at].1.begin();
                    seen[at] = made[at].load(Ordering::Acquire);
                }
            }
            seen
        });
        assert_eq!(seen, [WAKES / 4; 4]);
    }
}
