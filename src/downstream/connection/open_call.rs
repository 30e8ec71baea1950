// SPDX-License-Identifier: Apache-2.0
//! One open call of a connection.
//!
//! Owns which part of it is polled with which waker. Knows nothing of other calls.

use std::task::{Context, Poll};
use std::time::Instant;

use h2::SendStream;

use super::agenda::Ear;
use crate::downstream::call::UnaryCall;
use crate::downstream::stream::{Allowance, Driver};
use crate::wire::Rope;

pub(super) struct OpenCall {
    ear: Ear,
    kind: CallKind,
}

pub(super) enum CallKind {
    /// The last field is woken by requests.
    Stream(Box<Driver>, SendStream<Rope>, Ear),
    Unary(Box<UnaryCall>),
}

impl OpenCall {
    pub(super) const fn new(ear: Ear, kind: CallKind) -> Self {
        Self { ear, kind }
    }

    /// Lets the call be polled.
    pub(super) fn wake(&self) {
        self.ear.wake();
    }

    /// Polls the call: its requests, or everything else. Ready when it is over. Inlined, because every delivery passes through it.
    #[inline(always)]
    pub(super) fn poll(&mut self, requests: bool, allowance: &mut Allowance, now: Instant) -> Poll<()> {
        match &mut self.kind {
            CallKind::Stream(driver, _, ear) if requests => {
                let over = driver.hear(allowance, &mut Context::from_waker(ear.begin()), now);
                if driver.has_news() {
                    self.ear.wake();
                }
                over
            }
            CallKind::Stream(driver, send, requests) => {
                let over = driver.poll(send, allowance, &mut Context::from_waker(self.ear.begin()), now);
                if driver.hears_again(now) {
                    requests.wake();
                }
                over
            }
            CallKind::Unary(answer) => answer.poll(&mut Context::from_waker(self.ear.begin())),
        }
    }

    /// The transport had its turn after the stream gave it a response. Ready when the stream is over.
    pub(super) fn poll_times(&mut self, now: Instant) -> Poll<()> {
        match &mut self.kind {
            CallKind::Stream(driver, ..) => driver.poll_times(&mut Context::from_waker(self.ear.waker()), now),
            CallKind::Unary(_) => Poll::Pending,
        }
    }

    /// A stream has left the line, to be polled with room.
    pub(super) fn come_forward(&mut self) {
        if let CallKind::Stream(driver, ..) = &mut self.kind {
            driver.come_forward();
        }
    }

    /// Whether the client has accepted everything that was sent.
    pub(super) fn is_settled(&self) -> bool {
        match &self.kind {
            CallKind::Stream(driver, ..) => driver.is_settled(),
            CallKind::Unary(_) => true,
        }
    }

    /// Counts and logs that a stream ends because its client does not answer pings.
    pub(super) fn silent(&self, now: Instant) {
        if let CallKind::Stream(driver, ..) = &self.kind {
            driver.silent(now);
        }
    }

    /// Counts and logs that a stream ends because its client does not read.
    pub(super) fn stalled(&self, now: Instant) {
        if let CallKind::Stream(driver, ..) = &self.kind {
            driver.stalled(now);
        }
    }

    /// Lets a stream end in good order.
    pub(super) fn drain(&mut self) {
        match &mut self.kind {
            CallKind::Stream(driver, ..) => driver.drain(),
            CallKind::Unary(_) => {}
        }
    }
}
