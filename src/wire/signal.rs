// SPDX-License-Identifier: Apache-2.0
//! Whether a socket has become readable since the last read found nothing.
//!
//! The transport tries to read in each of its turns, and most turns have other reasons. Owns the waker that the socket gets. Does
//! not read.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Wake, Waker};

/// A flag that the socket raises. It is raised at the start.
#[derive(Debug)]
pub(super) struct SocketSignal {
    flag: Arc<Flag>,
    waker: Waker,
}

#[derive(Debug)]
struct Flag {
    raised: AtomicBool,
    reader: Waker,
}

impl Default for SocketSignal {
    fn default() -> Self {
        Self::of(Waker::noop().clone())
    }
}

impl SocketSignal {
    fn of(reader: Waker) -> Self {
        let flag = Arc::new(Flag {
            raised: AtomicBool::new(true),
            reader,
        });
        Self {
            waker: Waker::from(flag.clone()),
            flag,
        }
    }

    /// Lowers the flag, and returns whether it was raised. From now on, raising it wakes `reader`.
    pub(super) fn take(&mut self, reader: &Waker) -> bool {
        if !self.flag.reader.will_wake(reader) {
            // The reader before this one does not read any more.
            *self = Self::of(reader.clone());
        }
        // Lowered before the socket is read: bytes that arrive after that read raise it again.
        self.flag.raised.swap(false, Ordering::AcqRel)
    }

    pub(super) fn set(&self) {
        self.flag.raised.store(true, Ordering::Release);
    }

    /// Returns the context to poll the socket with; its waker raises the flag.
    pub(super) fn context(&self) -> Context<'_> {
        Context::from_waker(&self.waker)
    }
}

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.raised.store(true, Ordering::Release);
        self.reader.wake_by_ref();
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
    fn raised_until_taken_and_again_when_the_socket_says_so() {
        let counts = [0, 1].map(|_| Arc::new(Count::default()));
        let [first, second] = counts.clone().map(Waker::from);
        let woken = || counts.each_ref().map(|count| count.0.load(Ordering::Relaxed));
        let mut signal = SocketSignal::default();
        assert!(signal.take(&first));
        assert!(!signal.take(&first));
        signal.context().waker().wake_by_ref();
        assert_eq!(woken(), [1, 0]);
        assert!(signal.take(&first));
        signal.set();
        assert!(signal.take(&first) && !signal.take(&first));
        assert!(signal.take(&second), "another reader has to ask the socket first");
        signal.context().waker().wake_by_ref();
        assert_eq!(woken(), [1, 1]);
    }
}
