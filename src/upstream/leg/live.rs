// SPDX-License-Identifier: Apache-2.0
//! The open stream of a leg.
//!
//! Owns what ends with the stream: its dialect, whether it was answered, how it is counted, and since when it is idle. Does not know what
//! the messages mean.

use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use opentelemetry::trace::SpanContext;

use crate::protocol::Cutter;
use crate::telemetry::CountedStream;
use crate::upstream::ads_stream::AdsStream;
use crate::upstream::channel::Channel;
use crate::upstream::clock::now;
use crate::upstream::failure::Failure;
use crate::upstream::outbox::Outbox;
use crate::upstream::target::{ServerTarget, UpstreamSettings};
use crate::xds::Dialect;

/// A stream, from the moment its HTTP/2 request is sent.
pub(super) struct LiveStream {
    outbox: Outbox,
    stream: AdsStream,
    dialect: Dialect,
    opened: Instant,
    /// Whether a response has arrived.
    answered: bool,
    /// Whether none has arrived in the time that the server has for a name.
    silent: bool,
    /// Counts the stream once a response was read.
    counted: Option<CountedStream>,
    /// Since when nothing is wanted from it.
    idle: Option<Instant>,
}

/// A response, with what the stream knows of it.
pub(super) struct HeardResponse {
    pub(super) message: Cutter,
    pub(super) dialect: Dialect,
    /// Whether it is the first one of the stream.
    pub(super) first: bool,
    /// The span of the server for the stream, if it says one.
    pub(super) span: Option<SpanContext>,
}

impl LiveStream {
    pub(super) fn begin(
        channel: Channel,
        dialect: Dialect,
        target: &ServerTarget,
        settings: &UpstreamSettings,
    ) -> Self {
        let (stream, outbox) = AdsStream::begin(channel, dialect, target, settings);
        Self {
            outbox,
            stream,
            dialect,
            opened: now(),
            answered: false,
            silent: false,
            counted: None,
            idle: None,
        }
    }

    pub(super) const fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// Returns when it began.
    pub(super) const fn opened(&self) -> Instant {
        self.opened
    }

    pub(super) const fn is_answered(&self) -> bool {
        self.answered
    }

    /// Time has passed, of which the server has so much for a name.
    pub(super) fn handle_timeout(&mut self, patience: Duration, now: Instant) {
        self.silent = !self.answered && self.opened + patience <= now;
    }

    /// Whether nothing has come in that time.
    pub(super) const fn is_silent(&self) -> bool {
        self.silent
    }

    /// Returns the place for its requests.
    pub(super) const fn outbox(&self) -> &Outbox {
        &self.outbox
    }

    /// Counts it until it ends.
    pub(super) fn count(&mut self, counted: CountedStream) {
        self.counted = Some(counted);
    }

    /// Returns the next response, or why the stream ended.
    pub(super) fn poll_response(&mut self, cx: &mut Context<'_>) -> Poll<Result<HeardResponse, Failure>> {
        let response = ready!(self.stream.poll_response(cx));
        Poll::Ready(response.map(|message| HeardResponse {
            message,
            dialect: self.dialect,
            first: !std::mem::replace(&mut self.answered, true),
            span: self.stream.context(),
        }))
    }

    /// Returns when the last part of an incomplete message arrived, if it arrived after the last call.
    pub(super) fn partial(&mut self) -> Option<Instant> {
        self.stream.partial()
    }

    /// Something is wanted from it.
    pub(super) const fn occupy(&mut self) {
        self.idle = None;
    }

    /// Nothing is wanted from it. Returns whether that has been so for this time.
    pub(super) fn is_idle(&mut self, bound: Duration, now: Instant) -> bool {
        now >= *self.idle.get_or_insert(now) + bound
    }

    /// Returns when it has been idle for this time, or silent for the other one.
    pub(super) fn poll_timeout(&self, bound: Duration, patience: Duration) -> Option<Instant> {
        let silent = Some(self.opened + patience).filter(|_| !self.answered && !self.silent);
        self.idle.map(|since| since + bound).into_iter().chain(silent).min()
    }
}
