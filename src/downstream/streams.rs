//! The tasks of one connection's streams.
//!
//! Owns that a stream's response and its driver run in one task: either can wake it, and the driver can give the stream up
//! without its connection. Refuses to know what they do.

use std::future::poll_fn;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;

use hyper::rt::Executor;

use super::driver::Driver;
use super::echo::Echo;
use crate::shutdown::Drain;
use crate::wire::{Afloat, Gathered};

/// Where hyper starts the streams of one connection.
#[derive(Clone)]
pub(super) struct Streams {
    /// The driver of the stream that hyper starts next: it asks for a response and starts the stream in one go.
    next: Arc<Mutex<Option<Driver>>>,
    drain: Drain,
    /// What they hold of unfinished requests.
    gathered: Arc<Gathered>,
    /// What they have given to the transport.
    afloat: Arc<Afloat>,
}

/// A connection may hold unfinished requests of so many times the largest one.
const UNFINISHED_REQUESTS_MAX: usize = 4;

impl Streams {
    /// The streams of a connection on which a request has at most `request_bytes_max`.
    pub(super) fn new(drain: Drain, request_bytes_max: usize) -> Self {
        let bytes_max = request_bytes_max.saturating_mul(UNFINISHED_REQUESTS_MAX);
        Self {
            next: Arc::default(),
            drain,
            gathered: Arc::new(Gathered::new(bytes_max)),
            afloat: Arc::default(),
        }
    }

    pub(super) const fn gathered(&self) -> &Arc<Gathered> {
        &self.gathered
    }

    pub(super) const fn afloat(&self) -> &Arc<Afloat> {
        &self.afloat
    }

    /// The stream for which a response was just made has this driver.
    pub(super) fn drive(&self, driver: Driver) {
        *self.next.lock().unwrap_or_else(PoisonError::into_inner) = Some(driver);
    }
}

impl<F: Future<Output = ()> + Send + 'static> Executor<F> for Streams {
    fn execute(&self, stream: F) {
        let driver = self.next.lock().unwrap_or_else(PoisonError::into_inner).take();
        match driver {
            Some(driver) => start(run(stream, driver, self.drain.clone())),
            None => start(stream),
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "one task for each client stream")]
fn start(task: impl Future<Output = ()> + Send + 'static) {
    drop(tokio::spawn(task));
}

/// Ends when the response has ended, or when the driver gives up: dropping the stream then resets it.
fn run(stream: impl Future<Output = ()>, mut driver: Driver, drain: Drain) -> impl Future<Output = ()> {
    let mut stream = Echo::new(stream);
    let mut draining = drain.listen();
    poll_fn(move |cx| {
        if draining.poll(cx).is_ready() {
            driver.drain();
        }
        if driver.poll(cx).is_ready() || stream.poll(cx).is_ready() {
            return Poll::Ready(());
        }
        driver.poll_timers(cx)
    })
}
