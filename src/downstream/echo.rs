//! A future that wakes itself while it is polled, kept from making another turn of it.
//!
//! hyper wakes the task of a stream from within whenever a response takes room in the connection's window, so each response would
//! cost its task a second turn. Owns that no wake from elsewhere is lost. Refuses to know the future.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use futures_util::task::AtomicWaker;

/// The future in a box, because one that is pinned inside of another takes its place twice.
pub(super) struct Echo<F> {
    future: Pin<Box<F>>,
    ear: Arc<Ear>,
    waker: Waker,
}

#[derive(Default)]
struct Ear {
    task: AtomicWaker,
    within: AtomicBool,
    heard: AtomicBool,
}

/// How often the future is polled in one turn because it wakes itself.
const POLLS_MAX: usize = 2;

impl<F: Future> Echo<F> {
    pub(super) fn new(future: F) -> Self {
        let ear = Arc::new(Ear::default());
        Self {
            future: Box::pin(future),
            waker: Waker::from(ear.clone()),
            ear,
        }
    }

    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<F::Output> {
        self.ear.task.register(cx.waker());
        self.ear.within.store(true, Ordering::SeqCst);
        for _ in 0..POLLS_MAX {
            self.ear.heard.store(false, Ordering::SeqCst);
            let polled = self.future.as_mut().poll(&mut Context::from_waker(&self.waker));
            if polled.is_ready() {
                return polled;
            }
            if !self.ear.heard.load(Ordering::SeqCst) {
                break;
            }
        }
        // Whoever wakes says so before he looks whether this turn is still on: one of the two sees the other.
        self.ear.within.store(false, Ordering::SeqCst);
        if self.ear.heard.load(Ordering::SeqCst) {
            cx.waker().wake_by_ref();
        }
        Poll::Pending
    }
}

impl Wake for Ear {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.heard.store(true, Ordering::SeqCst);
        if !self.within.load(Ordering::SeqCst) {
            self.task.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
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
    fn only_wakes_from_elsewhere_make_a_turn() {
        let (count, mut polls) = (Arc::new(Count::default()), 0);
        let task = Waker::from(count.clone());
        let woken = || count.0.swap(0, Ordering::Relaxed);
        let mut last = None;
        let mut echo = Echo::new(poll_fn(|cx| {
            polls += 1;
            // Once in the first turn, always in the third.
            if polls == 1 || polls >= 4 {
                cx.waker().wake_by_ref();
            }
            last = Some(cx.waker().clone());
            Poll::<()>::Pending
        }));
        let mut cx = Context::from_waker(&task);
        assert!(echo.poll(&mut cx).is_pending());
        assert_eq!(woken(), 0, "it was polled again instead");
        echo.waker.wake_by_ref();
        assert_eq!(woken(), 1, "woken from elsewhere");
        assert!(echo.poll(&mut cx).is_pending());
        assert_eq!(woken(), 0);
        assert!(echo.poll(&mut cx).is_pending());
        assert_eq!(woken(), 1, "it cannot keep the thread for itself");
        drop(echo);
        assert_eq!(polls, 5);
        assert!(last.is_some_and(|last| !last.will_wake(&task)));
    }
}
