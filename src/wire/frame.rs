//! gRPC messages out of the bytes of a request stream.
//!
//! Owns the length prefix, compression, and the bound on a message's size, which holds before a message is gathered or inflated.
//! Refuses to know what a message says.

use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes, BytesMut};
use http::HeaderMap;
use tonic::Status;

use super::budget::{Charge, Share, Short};
use super::inflating::Inflating;
use super::response::PREFIX_LEN;

/// Reads messages one by one. Holds at most one incomplete message and what came with its beginning.
#[derive(Debug)]
pub struct Deframer {
    encoding: Encoding,
    /// A prefix can say no more.
    bytes_max: u32,
    /// What came last and was not read yet.
    chunk: Bytes,
    /// The beginning of a message whose end has not come yet, with its prefix.
    partial: BytesMut,
    inflating: Option<Box<Inflating>>,
    /// What all of this takes.
    charge: Charge,
}

/// How the client compresses, where it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// Not at all.
    Identity,
    /// With gzip.
    Gzip,
}

/// What to answer in `grpc-accept-encoding`.
pub const ACCEPTED_ENCODINGS: &str = "identity,gzip";

/// The most that is set aside for a message before its bytes have come.
const RESERVE_BYTES_MAX: usize = 8 * 1024;

/// What there is to be read.
#[derive(Debug, PartialEq, Eq)]
pub enum Read {
    /// A message.
    Message(Bytes),
    /// Nothing more, until more has come.
    Nothing,
    /// A message on which there is more work to do: it takes as many turns as it is large.
    Busy,
}

impl Encoding {
    /// Reads `grpc-encoding`.
    ///
    /// # Errors
    /// When it names another one.
    pub fn of(headers: &HeaderMap) -> Result<Self, Status> {
        match headers.get("grpc-encoding").map(|value| value.as_bytes()) {
            None | Some(b"identity") => Ok(Self::Identity),
            Some(b"gzip") => Ok(Self::Gzip),
            Some(other) => Err(Status::unimplemented(format!(
                "grpc-encoding `{}` is not supported; use one of {ACCEPTED_ENCODINGS}",
                other.get(..32).unwrap_or(other).escape_ascii()
            ))),
        }
    }
}

impl Deframer {
    /// Nothing has been read; a message has at most `bytes_max` bytes, also after decompression.
    #[must_use]
    pub fn new(encoding: Encoding, bytes_max: usize, share: Arc<Share>) -> Self {
        Self {
            encoding,
            bytes_max: u32::try_from(bytes_max).unwrap_or(u32::MAX),
            chunk: Bytes::new(),
            partial: BytesMut::new(),
            inflating: None,
            charge: Charge::new(share),
        }
    }

    /// What its connection holds of requests.
    #[must_use]
    pub const fn share(&self) -> &Arc<Share> {
        self.charge.share()
    }

    /// Takes what came. Call [`Self::read`] until there is nothing before giving more.
    pub fn push(&mut self, chunk: Bytes) {
        debug_assert!(self.chunk.is_empty(), "messages are left unread");
        self.chunk = chunk;
    }

    /// The next complete message.
    ///
    /// # Errors
    /// When the message is too large, is not what gRPC defines, or takes more than may be held; nothing can be read after that.
    pub fn read(&mut self) -> Result<Read, Status> {
        if self.inflating.is_some() {
            return self.inflate();
        }
        if self.chunk.is_empty() && self.partial.is_empty() {
            return Ok(Read::Nothing);
        }
        let Some((flag, length)) = self.prefix()? else {
            return Ok(Read::Nothing);
        };
        let whole = PREFIX_LEN + length;
        let message = if self.partial.is_empty() && self.chunk.len() >= whole {
            let mut message = self.chunk.split_to(whole);
            message.advance(PREFIX_LEN);
            message
        } else {
            self.gather(whole)?;
            if self.partial.len() < whole {
                return Ok(Read::Nothing);
            }
            // The memory goes with the message; the next one begins with none.
            let mut message = std::mem::take(&mut self.partial).freeze();
            message.advance(PREFIX_LEN);
            message
        };
        match (flag, self.encoding) {
            (0, Encoding::Identity | Encoding::Gzip) => {
                self.hold(0)?;
                Ok(Read::Message(message))
            }
            (1, Encoding::Gzip) => {
                self.inflating = Some(Box::new(Inflating::new(message)));
                self.inflate()
            }
            (1, Encoding::Identity) => Err(Status::internal(
                "a message is marked as compressed, but the stream has no grpc-encoding",
            )),
            (flag, _) => Err(Status::internal(format!("a message has the unknown flag {flag}"))),
        }
    }

    /// To be called when the stream has ended.
    ///
    /// # Errors
    /// When it ended within a message.
    pub fn finish(&self) -> Result<(), Status> {
        let got = self.partial.len() + self.chunk.len();
        if got == 0 {
            return Ok(());
        }
        Err(Status::invalid_argument(format!(
            "the stream ended in the middle of a message, after {got} bytes of it"
        )))
    }

    /// The prefix of the message that is being read, once it is there.
    fn prefix(&mut self) -> Result<Option<(u8, usize)>, Status> {
        if !self.partial.is_empty() {
            self.gather(PREFIX_LEN)?;
        } else if self.chunk.len() < PREFIX_LEN {
            self.gather(PREFIX_LEN)?;
            return Ok(None);
        }
        let mut bytes: &[u8] = if self.partial.is_empty() {
            &self.chunk
        } else {
            &self.partial
        };
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
        let missing = whole.saturating_sub(self.partial.len());
        let take = missing.min(self.chunk.len());
        let len = self.partial.len() + take;
        if len > self.partial.capacity() {
            // Twice as much as before, but never more than the message takes.
            let room = len.max(2 * self.partial.capacity()).max(RESERVE_BYTES_MAX);
            let room = room.min(whole).max(len);
            self.hold(room.saturating_sub(PREFIX_LEN))?;
            let mut larger = BytesMut::with_capacity(room);
            larger.extend_from_slice(&self.partial);
            self.partial = larger;
        }
        self.partial.extend_from_slice(&self.chunk.split_to(take));
        Ok(())
    }

    /// Ready, with how the stream must end, when what is held of a message must be given up because others need it.
    pub fn poll_given_up(&mut self, cx: &Context<'_>) -> Poll<Status> {
        self.charge.poll_given_up(cx).map(short)
    }

    /// So many bytes are held now.
    fn hold(&mut self, bytes: usize) -> Result<(), Status> {
        self.charge.set(bytes).map_err(short)
    }

    /// Inflates some more of a message.
    fn inflate(&mut self) -> Result<Read, Status> {
        let Some(mut inflating) = self.inflating.take() else {
            return Ok(Read::Nothing);
        };
        self.hold(inflating.holds_next())?;
        let over = inflating
            .step()
            .map_err(|error| Status::internal(format!("a message cannot be decompressed: {error}")))?;
        if inflating.len() > self.bytes_max as usize {
            return Err(self.too_large(format_args!("a message that is larger when decompressed")));
        }
        if over {
            self.hold(0)?;
            return Ok(Read::Message(inflating.whole()));
        }
        self.inflating = Some(inflating);
        Ok(Read::Busy)
    }

    fn too_large(&self, what: std::fmt::Arguments<'_>) -> Status {
        Status::resource_exhausted(format!(
            "{what}: over the relay's limit `limits.request` of {} bytes",
            self.bytes_max
        ))
    }
}

/// What the client is told: what is its own doing, and what is not to be had for now.
fn short(short: Short) -> Status {
    match short {
        Short::Own(..) => Status::resource_exhausted(short.to_string()),
        Short::Shared => Status::unavailable(short.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use crate::wire::inflating::PIECE_BYTES;
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
                Read::Message(message) => messages.push(message),
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

    /// What is inflated takes turns, and counts as it grows.
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
        assert_eq!((message.len(), turns, budget.bytes()), (1 << 20, 4, 0));

        // Another connection has it all: there is no more than the share.
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
