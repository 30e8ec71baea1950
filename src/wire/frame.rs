// SPDX-License-Identifier: Apache-2.0
//! Splits the bytes of a request stream into gRPC messages.
//!
//! Owns the length prefix, and the bound on a message's size, which is checked before a message is gathered or
//! inflated. Large messages are inflated in turns, one at a time in the whole process. Knows nothing of the content.

use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use tonic::Status;

use super::beginning::Beginning;
use super::budget::{Charge, Share, Short};
use super::encoding::Encoding;
use super::inflating::InflatingMessage;
use super::pieces::Pieces;
use super::response::PREFIX_LEN;
use super::turn::Permit;

/// Reads messages one by one. Holds at most one incomplete message and the chunk that came last.
pub struct Deframer {
    encoding: Encoding,
    /// The largest message. A `u32`, because the prefix of a message cannot state more.
    bytes_max: u32,
    /// The unread rest of the last chunk.
    chunk: Bytes,
    /// The beginning of an incomplete message, with its prefix. In a box, because most streams have none most of the time.
    partial: Option<Box<Beginning>>,
    inflating: Option<Box<InflatingMessage>>,
    /// The part of the budget that this message takes.
    charge: Charge,
}

/// The outcome of one read.
#[derive(Debug)]
pub enum Read {
    /// A message.
    Message(Pieces),
    /// No complete message until more bytes arrive.
    Nothing,
    /// A large message is being inflated: call again in the next turn of [`Deframer::poll_turn`], after others had theirs.
    Busy,
}

impl Deframer {
    /// Creates a reader of messages of at most `bytes_max` bytes each, also after decompression.
    #[must_use]
    pub fn new(encoding: Encoding, bytes_max: usize, share: Arc<Share>) -> Self {
        Self {
            encoding,
            bytes_max: u32::try_from(bytes_max).unwrap_or(u32::MAX),
            chunk: Bytes::new(),
            partial: None,
            inflating: None,
            charge: Charge::new(share),
        }
    }

    /// Returns the share of the connection in the budget for unfinished requests.
    pub const fn share(&self) -> &Arc<Share> {
        self.charge.share()
    }

    /// Takes the next chunk. Before that, call [`Self::read`] until it returns [`Read::Nothing`].
    pub fn push(&mut self, chunk: Bytes) {
        debug_assert!(self.chunk.is_empty(), "messages are left unread");
        self.chunk = chunk;
    }

    /// Returns the next complete message.
    ///
    /// # Errors
    /// When the message is too large, breaks the gRPC framing, or finds no memory. Nothing can be read after that.
    pub fn read(&mut self) -> Result<Read, Status> {
        if self.inflating.is_some() {
            return self.inflate();
        }
        if self.chunk.is_empty() && self.partial.is_none() {
            return Ok(Read::Nothing);
        }
        let Some((flag, length)) = self.prefix()? else {
            return Ok(Read::Nothing);
        };
        let whole = PREFIX_LEN + length;
        let message = if self.partial.is_none() && self.chunk.len() >= whole {
            let mut message = self.chunk.split_to(whole);
            message.advance(PREFIX_LEN);
            Pieces::from(message)
        } else {
            self.gather(whole)?;
            let Some(partial) = self.partial.take_if(|partial| partial.len() >= whole) else {
                return Ok(Read::Nothing);
            };
            let mut message = partial.finish();
            message.advance(PREFIX_LEN);
            message
        };
        match (flag, self.encoding) {
            (0, Encoding::Identity | Encoding::Gzip) => {
                self.hold(0)?;
                Ok(Read::Message(message))
            }
            (1, Encoding::Gzip) => {
                let inflating = InflatingMessage::new(message);
                if inflating.stated() > self.bytes_max as usize {
                    return Err(self.too_large(format_args!("a message that is larger when decompressed")));
                }
                self.hold(inflating.holds())?;
                let large = inflating.is_large();
                self.inflating = Some(Box::new(inflating));
                if large { Ok(Read::Busy) } else { self.inflate() }
            }
            (1, Encoding::Identity) => Err(Status::internal(
                "a message is marked as compressed, but the stream has no grpc-encoding",
            )),
            (flag, _) => Err(Status::internal(format!("a message has the unknown flag {flag}"))),
        }
    }

    /// Checks the end of the stream.
    ///
    /// # Errors
    /// When the stream ended in the middle of a message.
    pub fn finish(&self) -> Result<(), Status> {
        let got = self.partial.as_ref().map_or(0, |partial| partial.len()) + self.chunk.len();
        if got == 0 {
            return Ok(());
        }
        Err(Status::invalid_argument(format!(
            "the stream ended in the middle of a message, after {got} bytes of it"
        )))
    }

    /// Returns the prefix (flag and length) of the current message, once all of it has arrived.
    fn prefix(&mut self) -> Result<Option<(u8, usize)>, Status> {
        if self.partial.is_some() {
            self.gather(PREFIX_LEN)?;
        } else if self.chunk.len() < PREFIX_LEN {
            self.gather(PREFIX_LEN)?;
            return Ok(None);
        }
        let mut bytes = self.partial.as_ref().map_or(&*self.chunk, |partial| partial.front());
        let (Ok(flag), Ok(length)) = (bytes.try_get_u8(), bytes.try_get_u32()) else {
            return Ok(None);
        };
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        if length > self.bytes_max as usize {
            return Err(self.too_large(format_args!("a message of {length} bytes")));
        }
        Ok(Some((flag, length)))
    }

    /// Moves bytes from the chunk until there are `whole` bytes of the message.
    fn gather(&mut self, whole: usize) -> Result<(), Status> {
        let partial = self.partial.get_or_insert_default();
        loop {
            let bytes = partial.bytes_with(&self.chunk, whole);
            self.charge.set(bytes.saturating_sub(PREFIX_LEN))?;
            if !partial.take(&mut self.chunk, whole) {
                return Ok(());
            }
        }
    }

    /// Ready when the message must be given up because other connections need the memory. The stream must end with the status.
    pub fn poll_given_up(&mut self, cx: &Context<'_>) -> Poll<Status> {
        self.charge.poll_given_up(cx).map(Status::from)
    }

    /// Sets how many bytes of the budget this message takes.
    fn hold(&mut self, bytes: usize) -> Result<(), Status> {
        Ok(self.charge.set(bytes)?)
    }

    /// Ready when [`Self::read`] may be called, with the turn that lasts until it has returned, if it is one of those that large
    /// messages take.
    #[inline]
    pub fn poll_turn(&mut self, cx: &mut Context<'_>) -> Poll<Option<Permit>> {
        match &mut self.inflating {
            Some(inflating) => inflating.poll_turn(cx),
            None => Poll::Ready(None),
        }
    }

    /// Inflates one more piece of the message.
    fn inflate(&mut self) -> Result<Read, Status> {
        let Some(mut inflating) = self.inflating.take() else {
            return Ok(Read::Nothing);
        };
        let over = inflating
            .step()
            .map_err(|error| Status::internal(format!("a message cannot be decompressed: {error}")))?;
        if over {
            self.hold(0)?;
            return Ok(Read::Message(inflating.whole()));
        }
        self.inflating = Some(inflating);
        Ok(Read::Busy)
    }

    fn too_large(&self, what: std::fmt::Arguments<'_>) -> Status {
        Status::resource_exhausted(format!(
            "{what} is over the relay's limit `limits.request` of {} bytes",
            self.bytes_max
        ))
    }
}

impl From<Short> for Status {
    /// Returns the status for the client: whether its own requests are too large, or memory is short for now.
    fn from(short: Short) -> Self {
        match short {
            Short::Own(..) => Self::resource_exhausted(short.to_string()),
            Short::Shared => Self::unavailable(short.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use crate::wire::pieces::PIECE_BYTES;
    use crate::wire::{Budget, message};

    fn share() -> Arc<Share> {
        Arc::new(Budget::new(4000)).share()
    }

    fn deframer() -> Deframer {
        Deframer::new(Encoding::Gzip, 1000, share())
    }

    fn gzip(bytes: &[u8]) -> Bytes {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(bytes).unwrap();
        let mut framed = message(&encoder.finish().unwrap()).to_vec();
        framed[0] = 1;
        Bytes::from(framed)
    }

    fn read(deframer: &mut Deframer, chunk: &[u8]) -> Result<Vec<Bytes>, Status> {
        deframer.push(Bytes::copy_from_slice(chunk));
        let mut messages = Vec::new();
        loop {
            match deframer.read()? {
                Read::Message(mut message) => messages.push(message.copy_to_bytes(message.remaining())),
                Read::Busy => {}
                Read::Nothing => return Ok(messages),
            }
        }
    }

    #[test]
    fn messages_survive_every_cut() {
        let messages = [&b"first"[..], b"", b"second one", &[9; 1000]];
        let stream: Vec<u8> = messages
            .iter()
            .flat_map(|bytes| message(bytes))
            .chain(gzip(b"packed"))
            .collect();
        for size in 1..stream.len() {
            let mut deframer = deframer();
            let got: Vec<Bytes> = stream
                .chunks(size)
                .flat_map(|chunk| read(&mut deframer, chunk).unwrap())
                .collect();
            assert_eq!(got.len(), 5, "in chunks of {size}");
            assert!(
                got.iter().zip(messages).all(|(got, sent)| got == sent),
                "in chunks of {size}"
            );
            assert_eq!(&*got[4], b"packed");
            assert!(deframer.finish().is_ok());
        }
    }

    #[test]
    fn a_large_message_is_refused_by_its_prefix() {
        for chunks in [&[&[0, 0, 0, 3, 233][..]][..], &[&[0, 0], &[0, 3, 233]]] {
            let mut deframer = deframer();
            let result: Result<Vec<_>, _> = chunks.iter().map(|chunk| read(&mut deframer, chunk)).collect();
            let status = result.unwrap_err();
            assert_eq!(status.code(), tonic::Code::ResourceExhausted);
            assert!(status.message().contains("1001 bytes") && status.message().contains("`limits.request` of 1000"));
        }
    }

    #[test]
    fn a_bomb_is_refused_when_it_has_grown_too_large() {
        let status = read(&mut deframer(), &gzip(&vec![0; 1001])).unwrap_err();
        assert_eq!(status.code(), tonic::Code::ResourceExhausted);
        let status = read(&mut deframer(), &[1, 0, 0, 0, 3, 1, 2, 3]).unwrap_err();
        assert_eq!(status.code(), tonic::Code::Internal);
    }

    /// Inflating a large message takes several turns, and the budget counts what is inflated so far.
    #[test]
    fn a_large_message_takes_several_turns() {
        let budget = Arc::new(Budget::new(4 << 20));
        let mut deframer = Deframer::new(Encoding::Gzip, 1 << 20, budget.share());
        deframer.push(gzip(&vec![7; 1 << 20]));
        let mut turns = 0;
        let message = loop {
            match deframer.read().unwrap() {
                Read::Busy => turns += 1,
                Read::Message(message) => break message,
                Read::Nothing => panic!("nothing after {turns} turns"),
            }
            let held = budget.bytes();
            assert!(turns < 2 || held >= turns * PIECE_BYTES, "{held} in turn {turns}");
        };
        assert_eq!((message.remaining(), turns, budget.bytes()), (1 << 20, 4, 0));

        // Another connection holds most of the memory, and a request for more is refused.
        let mut other = Charge::new(budget.share());
        other.set(3 << 20).unwrap();
        let mut deframer = Deframer::new(Encoding::Gzip, 4 << 20, budget.share());
        let status = read(&mut deframer, &gzip(&vec![7; 3 << 20])).unwrap_err();
        assert_eq!(status.code(), tonic::Code::Unavailable);
        drop((deframer, other));
        assert_eq!(budget.bytes(), 0);
    }

    #[test]
    fn flags_mean_what_they_say() {
        let mut plain = Deframer::new(Encoding::Identity, 1000, share());
        assert_eq!(read(&mut plain, &gzip(b"x")).unwrap_err().code(), tonic::Code::Internal);
        assert_eq!(
            read(&mut deframer(), &[2, 0, 0, 0, 0]).unwrap_err().code(),
            tonic::Code::Internal
        );
    }

    #[test]
    fn an_end_within_a_message_is_an_error() {
        for cut in 1..8 {
            let mut deframer = deframer();
            assert!(read(&mut deframer, &message(b"abc")[..cut]).unwrap().is_empty());
            assert_eq!(
                deframer.finish().unwrap_err().code(),
                tonic::Code::InvalidArgument,
                "cut at {cut}"
            );
        }
    }
}
