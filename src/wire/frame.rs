//! gRPC messages out of the bytes of a request stream.
//!
//! Owns the length prefix, compression, and the bound on a message's size, which holds before a message is gathered.
//! Refuses to know what a message says.

use std::io::Read;
use std::sync::Arc;

use bytes::{Buf, Bytes, BytesMut};
use flate2::bufread::GzDecoder;
use http::HeaderMap;
use tonic::Status;

use super::gathered::{Charge, Gathered};
use super::response::PREFIX_LEN;

/// Reads messages one by one. Holds at most one incomplete message and what came with its beginning.
#[derive(Debug)]
pub struct Deframer {
    encoding: Encoding,
    bytes_max: usize,
    /// What came last and was not read yet.
    chunk: Bytes,
    /// The beginning of a message whose end has not come yet, with its prefix.
    partial: BytesMut,
    /// The beginning, as it is accounted for.
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
pub const ACCEPTED: &str = "identity,gzip";

/// The most that is set aside for a message before its bytes have come.
const RESERVE_BYTES_MAX: usize = 8 * 1024;

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
                "grpc-encoding `{}` is not supported; use one of {ACCEPTED}",
                other.get(..32).unwrap_or(other).escape_ascii()
            ))),
        }
    }
}

impl Deframer {
    /// Nothing has been read; a message has at most `bytes_max` bytes, also after decompression.
    #[must_use]
    pub fn new(encoding: Encoding, bytes_max: usize, gathered: Arc<Gathered>) -> Self {
        Self {
            encoding,
            bytes_max,
            chunk: Bytes::new(),
            partial: BytesMut::new(),
            charge: Charge::new(gathered),
        }
    }

    /// Takes what came. Call [`Self::message`] until there is none before giving more.
    pub fn push(&mut self, chunk: Bytes) {
        debug_assert!(self.chunk.is_empty(), "messages are left unread");
        self.chunk = chunk;
    }

    /// The next complete message.
    ///
    /// # Errors
    /// When the message is too large, or is not what gRPC defines; nothing can be read after that.
    pub fn message(&mut self) -> Result<Option<Bytes>, Status> {
        if self.chunk.is_empty() && self.partial.is_empty() {
            return Ok(None);
        }
        let Some((flag, length)) = self.prefix()? else {
            return Ok(None);
        };
        let whole = PREFIX_LEN + length;
        let message = if self.partial.is_empty() && self.chunk.len() >= whole {
            let mut message = self.chunk.split_to(whole);
            message.advance(PREFIX_LEN);
            message
        } else {
            self.gather(whole);
            if self.partial.len() < whole {
                self.account()?;
                return Ok(None);
            }
            // The memory goes with the message; the next one begins with none.
            let mut message = std::mem::take(&mut self.partial).freeze();
            self.account()?;
            message.advance(PREFIX_LEN);
            message
        };
        match (flag, self.encoding) {
            (0, Encoding::Identity | Encoding::Gzip) => Ok(Some(message)),
            (1, Encoding::Gzip) => self.inflate(&message).map(Some),
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
            self.gather(PREFIX_LEN);
        } else if self.chunk.len() < PREFIX_LEN {
            self.gather(PREFIX_LEN);
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
        if length > self.bytes_max {
            return Err(self.too_large(format_args!("a message of {length} bytes")));
        }
        Ok(Some((flag, length)))
    }

    /// Moves bytes from the chunk until there are `whole` bytes of the message.
    fn gather(&mut self, whole: usize) {
        let missing = whole.saturating_sub(self.partial.len());
        let take = missing.min(self.chunk.len());
        if self.partial.is_empty() && take > 0 {
            self.partial.reserve(whole.min(RESERVE_BYTES_MAX));
        }
        self.partial.extend_from_slice(&self.chunk.split_to(take));
    }

    fn account(&mut self) -> Result<(), Status> {
        self.charge.set(self.partial.len()).map_err(|all| {
            Status::resource_exhausted(format!(
                "the streams of this connection hold {all} bytes of unfinished requests, more than `limits.request` of {} \
                 bytes allows",
                self.bytes_max
            ))
        })
    }

    fn inflate(&self, message: &[u8]) -> Result<Bytes, Status> {
        let mut inflated = Vec::new();
        GzDecoder::new(message)
            .take((self.bytes_max as u64).saturating_add(1))
            .read_to_end(&mut inflated)
            .map_err(|error| Status::internal(format!("a message cannot be decompressed: {error}")))?;
        if inflated.len() > self.bytes_max {
            return Err(self.too_large(format_args!("a message that is larger when decompressed")));
        }
        Ok(Bytes::from(inflated))
    }

    fn too_large(&self, what: std::fmt::Arguments<'_>) -> Status {
        Status::resource_exhausted(format!(
            "{what}: over the relay's limit `limits.request` of {} bytes",
            self.bytes_max
        ))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use crate::wire::message;

    fn deframer() -> Deframer {
        Deframer::new(Encoding::Gzip, 1000, Arc::new(Gathered::new(4000)))
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
        while let Some(message) = deframer.message()? {
            messages.push(message);
        }
        Ok(messages)
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

    #[test]
    fn flags_mean_what_they_say() {
        let mut plain = Deframer::new(Encoding::Identity, 1000, Arc::new(Gathered::new(4000)));
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
