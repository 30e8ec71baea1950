// SPDX-License-Identifier: Apache-2.0
//! The network: what is on its way, and the bells that wake the tasks of streams.
//!
//! Knows nothing of the content of messages.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::task::{Wake, Waker};
use std::time::Duration;

use super::course::Course;
use super::event::Event;
use super::stream::Stream;

/// The streams between the relay and its clients.
#[derive(Default)]
pub(crate) struct Network {
    streams: BTreeMap<u64, Box<Stream>>,
    woken: Arc<Woken>,
}

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
struct Woken(Mutex<Vec<u64>>);

/// The waker of one stream.
struct Ringer {
    stream: u64,
    woken: Arc<Woken>,
}

impl Wake for Ringer {
    fn wake(self: Arc<Self>) {
        self.woken.0.lock().expect("one thread").push(self.stream);
    }
}

impl Network {
    /// The streams that there are, the oldest one first.
    pub(crate) fn ids(&self) -> Vec<u64> {
        self.streams.keys().copied().collect()
    }

    pub(crate) fn get(&self, id: u64) -> Option<&Stream> {
        self.streams.get(&id).map(|stream| &**stream)
    }

    pub(crate) fn get_mut(&mut self, id: u64) -> Option<&mut Stream> {
        self.streams.get_mut(&id).map(|stream| &mut **stream)
    }

    pub(crate) fn streams(&self) -> impl Iterator<Item = &Stream> {
        self.streams.values().map(|stream| &**stream)
    }

    pub(crate) fn streams_mut(&mut self) -> impl Iterator<Item = &mut Stream> {
        self.streams.values_mut().map(|stream| &mut **stream)
    }

    /// Takes a stream out, to put it back or not.
    pub(crate) fn take(&mut self, id: u64) -> Option<Box<Stream>> {
        self.streams.remove(&id)
    }

    pub(crate) fn put(&mut self, stream: Box<Stream>) {
        self.streams.insert(stream.id, stream);
    }

    /// What rings the bell of a stream.
    pub(crate) fn waker(&self, stream: u64) -> Waker {
        let woken = self.woken.clone();
        Waker::from(Arc::new(Ringer { stream, woken }))
    }

    pub(crate) fn ring(&self, id: u64) {
        self.waker(id).wake();
    }

    /// The streams whose bells have rung since the last call.
    pub(crate) fn take_woken(&self) -> Vec<u64> {
        std::mem::take(&mut *self.woken.0.lock().expect("one thread"))
    }

    /// Nothing passes on this link until it heals.
    pub(crate) fn stall(&mut self, id: u64, course: &mut Course) {
        if let Some(stream) = self.get_mut(id) {
            stream.stalled = true;
            course.log(|| format!("stream {id}: stalls"));
        }
    }

    pub(crate) fn heal(&mut self, id: u64, course: &mut Course) {
        let Some(stream) = self.get_mut(id).filter(|stream| stream.stalled) else {
            return;
        };
        stream.stalled = false;
        let (up, down) = (stream.up.take_late(), stream.down.take_late());
        course.log(|| format!("stream {id}: heals"));
        (0..up).for_each(|_| course.at_once(Event::ToRelay(id)));
        (0..down).for_each(|_| course.at_once(Event::ToClient(id)));
    }

    /// All links heal.
    pub(crate) fn heal_all(&mut self, course: &mut Course) {
        self.ids().into_iter().for_each(|id| self.heal(id, course));
    }
}
