// SPDX-License-Identifier: Apache-2.0
//! The client side of HTTP/2, with only what a simulated client needs: bytes in, events and bytes out. Owns frames, windows and
//! streams. Knows nothing of sockets, gRPC and time.
//!
//! Of the input it keeps only an incomplete frame, so that an idle connection takes a few hundred bytes.

mod frame;
pub(crate) mod hpack;

use std::sync::Arc;

use bytes::Bytes;

use frame::{DATA, FRAME_BYTES_MAX, FrameHead, HEAD_BYTES, PADDED, SETTINGS, integer, needed, parse, unpadded};
use hpack::Head;

/// One connection. Invariant: `queued` of a stream holds what does not fit into its window or the connection's.
#[derive(Debug)]
pub(crate) struct Http2 {
    /// Bytes to write to the peer.
    pub(crate) out: Vec<u8>,
    pending: Vec<u8>,
    /// The current data frame: its stream, the bytes still to come, and whether it is the last.
    data: Option<(u32, usize, bool)>,
    /// Fragments of a header block.
    block: Option<(u32, Vec<u8>, bool)>,
    streams: Vec<Stream>,
    window: i64,
    initial_window: i64,
    frame_max: usize,
    consumed: u32,
    /// Whether the peer has begun to speak HTTP/2.
    greeted: bool,
}

#[derive(Debug, Default)]
struct Stream {
    window: i64,
    consumed: u32,
    queued: Vec<Bytes>,
    /// Whether the stream ends after the queued bytes.
    ends: bool,
}

/// What all requests of a connection have in common.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) authority: Arc<str>,
    pub(crate) secure: bool,
    /// Further headers.
    pub(crate) headers: Vec<(String, String)>,
}

/// What the peer did.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Event<'a> {
    /// Bytes of a stream's body.
    Data(u32, &'a [u8]),
    /// Headers or trailers.
    Head(u32, Head),
    /// The end of the stream.
    End(u32),
    /// The stream was reset, with this code.
    Reset(u32, u32),
    /// No stream above this one will be served, for this reason.
    GoAway(u32, u32),
    /// The answer to a ping.
    Pong,
}

/// A peer that does not speak HTTP/2.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Broken {
    /// The first line of its answer.
    #[error("{kind} answered, with `{0}`", kind = frame::kind_of(.0))]
    Greeting(String),
    #[error("a server that wants TLS answered")]
    Tls,
    #[error("HTTP/2: {0}")]
    Head(#[from] hpack::Unreadable),
    #[error("HTTP/2: a frame of {0} bytes is larger than allowed")]
    Large(usize),
    #[error("HTTP/2: a frame of type {0} is not allowed at this point")]
    Frame(u8),
}

/// The same as Envoy's, so that the server's own limits apply.
const STREAM_WINDOW_BYTES: u32 = 16 * 1024 * 1024;
const CONNECTION_WINDOW_BYTES: u32 = 24 * 1024 * 1024;
const DEFAULT_WINDOW_BYTES: u32 = 65_535;
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const GRPC: [(&str, &str); 2] = [("content-type", "application/grpc"), ("te", "trailers")];
const JSON: [(&str, &str); 1] = [("content-type", "application/json")];
const HEADERS: u8 = 1;
const RESET: u8 = 3;
const PING: u8 = 6;
const GO_AWAY: u8 = 7;
const WINDOW: u8 = 8;
const CONTINUATION: u8 = 9;
const END_STREAM: u8 = 1;
const ACK: u8 = 1;
const END_HEADERS: u8 = 4;
const PRIORITY: u8 = 0x20;

impl Http2 {
    /// Creates a new connection.
    pub(crate) fn new() -> Self {
        let mut http2 = Self {
            out: PREFACE.to_vec(),
            pending: Vec::new(),
            data: None,
            block: None,
            streams: Vec::new(),
            window: i64::from(DEFAULT_WINDOW_BYTES),
            initial_window: i64::from(DEFAULT_WINDOW_BYTES),
            frame_max: FRAME_BYTES_MAX,
            consumed: 0,
            greeted: false,
        };
        let mut settings = Vec::with_capacity(18);
        // No dynamic table, no pushes, a window as large as Envoy's.
        for (key, value) in [(1_u16, 0_u32), (2, 0), (4, STREAM_WINDOW_BYTES)] {
            settings.extend(key.to_be_bytes());
            settings.extend(value.to_be_bytes());
        }
        http2.frame(SETTINGS, 0, 0, &settings);
        http2.widen(0, CONNECTION_WINDOW_BYTES - DEFAULT_WINDOW_BYTES);
        http2
    }

    /// Opens a gRPC stream to this path.
    pub(crate) fn open(&mut self, call: &Call, path: &str) {
        let _ = self.request(call, path, &GRPC);
    }

    /// Posts JSON to this path.
    pub(crate) fn post(&mut self, call: &Call, path: &str, body: Bytes) {
        let id = self.request(call, path, &JSON);
        if let Some(stream) = self.stream(id) {
            stream.ends = true;
        }
        self.send(id, body);
    }

    fn request(&mut self, call: &Call, path: &str, more: &[(&str, &str)]) -> u32 {
        let id = u32::try_from(self.streams.len() * 2 + 1).unwrap_or(u32::MAX);
        self.streams.push(Stream {
            window: self.initial_window,
            ..Stream::default()
        });
        let head = [
            (":method", "POST"),
            (":scheme", if call.secure { "https" } else { "http" }),
            (":path", path),
            (":authority", &*call.authority),
        ];
        let own = call.headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let block = hpack::encode(
            &head
                .into_iter()
                .chain(more.iter().copied())
                .chain(own)
                .collect::<Vec<_>>(),
        );
        self.frame(HEADERS, END_HEADERS, id, &block);
        id
    }

    /// Asks the peer whether it is there.
    pub(crate) fn ping(&mut self) {
        self.frame(PING, 0, 0, &[0; 8]);
    }

    /// Whether the peer has begun to speak HTTP/2.
    pub(crate) const fn is_greeted(&self) -> bool {
        self.greeted
    }

    /// Sends `bytes` on a stream as soon as the peer's windows allow.
    pub(crate) fn send(&mut self, id: u32, bytes: Bytes) {
        if let Some(stream) = self.stream(id) {
            stream.queued.push(bytes);
            self.drain(id);
        }
    }

    fn stream(&mut self, id: u32) -> Option<&mut Stream> {
        let at = usize::try_from(id.checked_sub(1)? / 2).ok()?;
        self.streams.get_mut(at)
    }

    fn drain(&mut self, id: u32) {
        loop {
            let (window, frame_max) = (self.window, self.frame_max);
            let Some(stream) = self.stream(id) else { return };
            let Some(first) = stream.queued.first_mut() else { return };
            let room = usize::try_from(window.min(stream.window)).unwrap_or(0).min(frame_max);
            let piece = first.split_to(room.min(first.len()));
            if first.is_empty() {
                stream.queued.remove(0);
            }
            if piece.is_empty() {
                return;
            }
            let length = i64::try_from(piece.len()).unwrap_or(i64::MAX);
            stream.window -= length;
            let ends = stream.ends && stream.queued.is_empty();
            self.window -= length;
            self.frame(DATA, if ends { END_STREAM } else { 0 }, id, &piece);
        }
    }

    fn frame(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        let [_, length @ ..] = u32::try_from(payload.len()).unwrap_or(u32::MAX).to_be_bytes();
        self.out.extend(length);
        self.out.extend([kind, flags]);
        self.out.extend(stream.to_be_bytes());
        self.out.extend_from_slice(payload);
    }

    fn widen(&mut self, stream: u32, bytes: u32) {
        self.frame(WINDOW, 0, stream, &bytes.to_be_bytes());
    }

    /// Reads `input` and hands its events to `sink`.
    pub(crate) fn feed<E: From<Broken>>(
        &mut self,
        mut input: &[u8],
        mut sink: impl FnMut(Event<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        while !input.is_empty() {
            if let Some((stream, left, last)) = self.data {
                let (bytes, rest) = input.split_at(left.min(input.len()));
                input = rest;
                self.data = (bytes.len() < left).then_some((stream, left - bytes.len(), last));
                self.consume(stream, bytes.len());
                sink(Event::Data(stream, bytes))?;
                if self.data.is_none() && last {
                    sink(Event::End(stream))?;
                }
                continue;
            }
            let whole = self.pending.is_empty();
            if !whole {
                let wanted = needed(&self.pending)?;
                let (taken, rest) = input.split_at((wanted - self.pending.len()).min(input.len()));
                self.pending.extend_from_slice(taken);
                input = rest;
            }
            let mut pending = std::mem::take(&mut self.pending);
            let frame = if whole { input } else { &pending };
            self.greeted = self.greeted || frame::greets(frame)?;
            let wanted = needed(frame)?;
            let complete = frame.len() >= wanted && frame.len() >= HEAD_BYTES;
            if complete {
                self.take(frame.get(..wanted).unwrap_or_default(), &mut sink)?;
            }
            if whole {
                if complete {
                    input = input.get(wanted..).unwrap_or_default();
                } else {
                    pending.extend_from_slice(input);
                    input = &[];
                }
            } else if complete {
                pending = Vec::new();
            }
            self.pending = pending;
        }
        Ok(())
    }

    /// Handles a frame, or the head of a data frame.
    fn take<E: From<Broken>>(
        &mut self,
        frame: &[u8],
        sink: &mut impl FnMut(Event<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let Some((head, mut payload)) = parse(frame) else {
            return Ok(());
        };
        let FrameHead {
            kind, flags, stream, ..
        } = head;
        match kind {
            DATA if flags & PADDED == 0 => {
                if head.length > 0 {
                    self.data = Some((stream, head.length, flags & END_STREAM != 0));
                } else if flags & END_STREAM != 0 {
                    sink(Event::End(stream))?;
                }
            }
            DATA => {
                self.consume(stream, payload.len());
                sink(Event::Data(stream, unpadded(payload)))?;
                if flags & END_STREAM != 0 {
                    sink(Event::End(stream))?;
                }
            }
            HEADERS => {
                if flags & PADDED != 0 {
                    payload = unpadded(payload);
                }
                if flags & PRIORITY != 0 {
                    payload = payload.get(5..).unwrap_or_default();
                }
                self.block = Some((stream, payload.to_vec(), flags & END_STREAM != 0));
                self.take_block(flags, sink)?;
            }
            CONTINUATION => {
                match &mut self.block {
                    Some((_, block, _)) => block.extend_from_slice(payload),
                    None => return Err(Broken::Frame(kind).into()),
                }
                self.take_block(flags, sink)?;
            }
            RESET => sink(Event::Reset(stream, integer(payload)))?,
            GO_AWAY => sink(Event::GoAway(
                integer(payload),
                integer(payload.get(4..).unwrap_or_default()),
            ))?,
            SETTINGS if flags & ACK == 0 => self.settings(payload),
            PING if flags & ACK == 0 => self.frame(PING, ACK, 0, payload),
            PING => sink(Event::Pong)?,
            WINDOW => self.widened(stream, i64::from(integer(payload))),
            _ => {} // Unknown frames mean nothing.
        }
        Ok(())
    }

    fn take_block<E: From<Broken>>(
        &mut self,
        flags: u8,
        sink: &mut impl FnMut(Event<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        if flags & END_HEADERS == 0 {
            return Ok(());
        }
        if let Some((stream, block, last)) = self.block.take() {
            sink(Event::Head(stream, Head::decode(&block).map_err(Broken::from)?))?;
            if last {
                sink(Event::End(stream))?;
            }
        }
        Ok(())
    }

    fn settings(&mut self, payload: &[u8]) {
        for entry in payload.chunks_exact(6) {
            let (key, value) = entry.split_at(2);
            let value = integer(value);
            match key {
                [0, 4] => {
                    let grown = i64::from(value) - self.initial_window;
                    self.initial_window = i64::from(value);
                    self.streams.iter_mut().for_each(|stream| stream.window += grown);
                    self.drain_all();
                }
                [0, 5] => self.frame_max = usize::try_from(value).unwrap_or(FRAME_BYTES_MAX),
                _ => {}
            }
        }
        self.frame(SETTINGS, ACK, 0, &[]);
    }

    fn widened(&mut self, id: u32, bytes: i64) {
        if id == 0 {
            self.window += bytes;
            self.drain_all();
        } else if let Some(stream) = self.stream(id) {
            stream.window += bytes;
            self.drain(id);
        }
    }

    fn drain_all(&mut self) {
        (0..self.streams.len()).for_each(|at| self.drain(u32::try_from(at * 2 + 1).unwrap_or(u32::MAX)));
    }

    /// Enlarges windows again when half of them is used up.
    fn consume(&mut self, id: u32, bytes: usize) {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        self.consumed += bytes;
        if self.consumed >= CONNECTION_WINDOW_BYTES / 2 {
            let consumed = std::mem::take(&mut self.consumed);
            self.widen(0, consumed);
        }
        if let Some(stream) = self.stream(id) {
            stream.consumed += bytes;
            if stream.consumed >= STREAM_WINDOW_BYTES / 2 {
                let consumed = std::mem::take(&mut stream.consumed);
                self.widen(id, consumed);
            }
        }
    }
}
