//! Which parts of one connection have something to do.
//!
//! A connection is one task; its transport and its calls are parts of it, each with a waker of its own, so that a turn polls those
//! that were woken and no others. Owns that no wake is lost. Refuses to know what a part does.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Wake, Waker};

/// The parts that were woken, in the order in which they were.
#[derive(Debug, Default)]
pub(super) struct Agenda(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    woken: VecDeque<u32>,
    /// Whether the task has its turn: it asks for the next part itself then.
    within: bool,
    task: Option<Waker>,
}

/// What a part is woken by.
#[derive(Debug)]
pub(super) struct Ear {
    part: Arc<Part>,
    waker: Waker,
}

/// One part, which is in the list at most once.
#[derive(Debug)]
struct Part {
    agenda: Arc<Agenda>,
    number: u32,
    noted: AtomicBool,
}

impl Agenda {
    /// A part by this number.
    pub(super) fn part(self: &Arc<Self>, number: u32) -> Ear {
        let part = Arc::new(Part {
            agenda: self.clone(),
            number,
            noted: AtomicBool::new(false),
        });
        Ear {
            waker: Waker::from(part.clone()),
            part,
        }
    }

    /// The task has its turn.
    pub(super) fn begin(&self, task: &Waker) {
        let mut inner = self.lock();
        inner.within = true;
        match &mut inner.task {
            Some(known) => known.clone_from(task),
            None => inner.task = Some(task.clone()),
        }
    }

    /// The next part, which must then be told so ([`Ear::begin`]); without one the turn is over.
    pub(super) fn next(&self) -> Option<u32> {
        let mut inner = self.lock();
        let next = inner.woken.pop_front();
        inner.within = next.is_some();
        next
    }

    /// The turn is over although there may be more to do: then there is another one.
    pub(super) fn end(&self) {
        let mut inner = self.lock();
        inner.within = false;
        if let Some(task) = inner.task.as_ref().filter(|_| !inner.woken.is_empty()) {
            task.wake_by_ref();
        }
    }

    fn note(&self, number: u32) {
        let mut inner = self.lock();
        inner.woken.push_back(number);
        // The waker of a task does no more than put it in a queue, so the lock may be held.
        if let Some(task) = inner.task.as_ref().filter(|_| !inner.within) {
            task.wake_by_ref();
        }
    }

    /// Nothing that panics is called with the lock held.
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ear {
    /// The part is polled now, with this waker: whatever happens from here on wakes it again.
    pub(super) fn begin(&self) -> &Waker {
        self.part.noted.swap(false, Ordering::AcqRel);
        &self.waker
    }

    /// What wakes it.
    pub(super) const fn waker(&self) -> &Waker {
        &self.waker
    }

    /// The part has something to do.
    pub(super) fn wake(&self) {
        self.part.wake_by_ref();
    }
}

impl Wake for Part {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.noted.swap(true, Ordering::AcqRel) {
            self.agenda.note(self.number);
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
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn who_is_woken_has_a_turn_and_only_wakes_from_elsewhere_make_one() {
        let count = Arc::new(Count::default());
        let task = Waker::from(count.clone());
        let turns = || count.0.swap(0, Ordering::Relaxed);
        let agenda = Arc::new(Agenda::default());
        let parts = [0, 1].map(|number| agenda.part(number));
        agenda.begin(&task);
        assert_eq!(agenda.next(), None, "nobody was woken");
        for _ in 0..2 {
            parts[1].wake();
        }
        assert_eq!(turns(), 1, "once, however often");
        agenda.begin(&task);
        assert_eq!(agenda.next(), Some(1));
        let _ = parts[1].begin();
        parts[0].wake();
        parts[1].wake();
        assert_eq!(turns(), 0, "it is found in this turn");
        assert_eq!(agenda.next(), Some(0));
        let _ = parts[0].begin();
        agenda.end();
        assert_eq!(turns(), 1, "there is more to do");
        agenda.begin(&task);
        assert_eq!(agenda.next(), Some(1));
        let _ = parts[1].begin();
        assert_eq!(agenda.next(), None);
        parts[0].wake();
        assert_eq!(turns(), 1, "after the turn");
        agenda.begin(&task);
        assert_eq!(agenda.next(), Some(0));
        agenda.end();
        assert_eq!(turns(), 0, "there is no more to do");
    }
}
