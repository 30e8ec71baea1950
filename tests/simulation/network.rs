//! The network: what is on its way, and the bells that wake the tasks of streams.
//!
//! Knows nothing of the content of messages.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::task::Wake;
use std::time::Duration;

/// Messages on their way in one direction of one stream.
#[derive(Debug)]
pub(crate) struct Pipe<T> {
    messages: VecDeque<T>,
    last: Duration,
    /// Messages that would have arrived while the link was stalled.
    late: usize,
}

impl<T> Default for Pipe<T> {
    fn default() -> Self {
        Self {
            messages: VecDeque::new(),
            last: Duration::ZERO,
            late: 0,
        }
    }
}

impl<T> Pipe<T> {
    /// When the message arrives: never before the one in front of it.
    pub(crate) fn send(&mut self, message: T, at: Duration) -> Duration {
        self.messages.push_back(message);
        self.last = self.last.max(at);
        self.last
    }

    pub(crate) fn arrive(&mut self, stalled: bool) -> Option<T> {
        if stalled {
            self.late += 1;
            return None;
        }
        self.messages.pop_front()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// What is on its way.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.messages.iter()
    }

    pub(crate) fn take_late(&mut self) -> usize {
        std::mem::take(&mut self.late)
    }
}

/// The streams whose bells have rung.
#[derive(Default)]
pub(crate) struct Woken(Mutex<Vec<u64>>);

/// The waker of one stream.
pub(crate) struct Ringer {
    pub(crate) stream: u64,
    pub(crate) woken: Arc<Woken>,
}

impl Wake for Ringer {
    fn wake(self: Arc<Self>) {
        self.woken.wake(self.stream);
    }
}

impl Woken {
    pub(crate) fn wake(&self, stream: u64) {
        self.0.lock().expect("one thread").push(stream);
    }

    pub(crate) fn take(&self) -> Vec<u64> {
        std::mem::take(&mut *self.0.lock().expect("one thread"))
    }
}
