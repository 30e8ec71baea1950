// SPDX-License-Identifier: Apache-2.0
//! TLS on a client's connection: plain bytes on one side, records on the other.
//!
//! Owns incomplete and unsent records, and no other memory while it is idle: records are opened and sealed in buffers of the
//! thread. Knows nothing of the content.

mod batch;
mod handshake;

use std::cell::Cell;
use std::fmt;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, BytesMut};
use rustls::server::{ServerConnectionData, UnbufferedServerConnection};
use rustls::unbuffered::{ConnectionState, EncodeError, EncodeTlsData, UnbufferedStatus};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

pub use handshake::{HANDSHAKE, hello};

use batch::{Batch, Traffic};

/// A TLS connection. Outside of this module, its handshake is complete.
pub struct Sealed<S> {
    socket: S,
    tls: UnbufferedServerConnection,
    /// The beginning of an incomplete record.
    incoming: Vec<u8>,
    /// Opened content that was not read yet.
    opened: BytesMut,
    /// Records that the socket has not taken. As long as there are any, writers wait.
    outgoing: BytesMut,
    /// Whether the client has closed its side.
    ended: bool,
    /// Whether the relay has closed its side.
    closing: bool,
    /// Whether TLS has failed; nothing more is opened or sealed then.
    failed: bool,
}

/// The longest record, with its header and overhead.
const RECORD_BYTES_MAX: usize = 16 * 1024 + 5 + 2048;
/// The most bytes that are kept of an incomplete message. A handshake message may take several records.
const INCOMING_BYTES_MAX: usize = 128 * 1024;
const FAREWELL_BYTES_MAX: usize = 256;

thread_local! {
    /// Lent to one connection for the time of a call.
    static RECORDS: Cell<Vec<u8>> = Cell::default();
    static BATCH: Cell<Batch> = Cell::default();
}

impl<S: AsyncRead + AsyncWrite + Unpin> Sealed<S> {
    /// Reads once from the socket, and opens the records.
    fn poll_receive(&mut self, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let mut records = RECORDS.take();
        let kept = self.incoming.len();
        let room = kept + RECORD_BYTES_MAX;
        if records.len() < room {
            records.resize(room, 0);
        }
        let received = self.poll_receive_in(cx, into, kept, &mut records);
        RECORDS.set(records);
        received
    }

    fn poll_receive_in(
        &mut self,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
        kept: usize,
        records: &mut [u8],
    ) -> Poll<io::Result<()>> {
        let (before, room) = records.split_at_mut(kept);
        let mut room = ReadBuf::new(room);
        ready!(Pin::new(&mut self.socket).poll_read(cx, &mut room))?;
        let count = room.filled().len();
        if count == 0 {
            self.ended = true;
            return Poll::Ready(Ok(()));
        }
        before.copy_from_slice(&self.incoming);
        let records = records.get_mut(..kept + count).unwrap_or_default();
        Poll::Ready(self.open(records, into))
    }

    /// Opens records into `into`, and keeps the content that does not fit and an incomplete last record.
    fn open(&mut self, records: &mut [u8], into: &mut ReadBuf<'_>) -> io::Result<()> {
        let mut used = 0;
        loop {
            let rest = records.get_mut(used..).unwrap_or_default();
            let UnbufferedStatus { discard, state } = self.tls.process_tls_records(rest);
            used += discard;
            match state {
                Ok(ConnectionState::ReadTraffic(mut traffic)) => {
                    while let Some(record) = traffic.next_record() {
                        let record = record.map_err(invalid)?;
                        used += record.discard;
                        let (fits, more) = record.payload.split_at(record.payload.len().min(into.remaining()));
                        into.put_slice(fits);
                        self.opened.extend_from_slice(more);
                    }
                }
                Ok(ConnectionState::EncodeTlsData(mut data)) => encode(&mut data, &mut self.outgoing)?,
                Ok(ConnectionState::TransmitTlsData(data)) => data.done(),
                Ok(ConnectionState::PeerClosed) => self.ended = true,
                Ok(_) => break,
                Err(error) => {
                    self.fail();
                    return Err(invalid(error));
                }
            }
        }
        self.incoming = records.get(used..).unwrap_or_default().to_vec();
        if self.incoming.len() > INCOMING_BYTES_MAX {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a TLS message is too long"));
        }
        Ok(())
    }

    /// Takes the alert that TLS has for the client. After that, TLS must not be called again.
    fn fail(&mut self) {
        self.failed = true;
        self.incoming = Vec::new();
        while self.tls.wants_write() {
            match self.tls.process_tls_records(&mut []).state {
                Ok(ConnectionState::EncodeTlsData(mut data)) => drop(encode(&mut data, &mut self.outgoing)),
                Ok(ConnectionState::ReadTraffic(mut traffic)) => while traffic.next_record().is_some() {},
                _ => return,
            }
        }
    }

    /// Sends the records that the socket has not taken yet.
    fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.outgoing.is_empty() {
            let count = ready!(Pin::new(&mut self.socket).poll_write(cx, &self.outgoing))?;
            if count == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.outgoing.advance(count);
            if self.outgoing.is_empty() {
                // Frees the memory instead of keeping it for the next time.
                self.outgoing = BytesMut::new();
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Calls `send` with the sending side of the connection, after TLS has done its own work.
    fn sending<T>(&mut self, mut send: impl FnMut(&mut Traffic<'_>) -> io::Result<T>) -> io::Result<T> {
        loop {
            if self.failed {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            let UnbufferedStatus { discard, state } = self.tls.process_tls_records(&mut self.incoming);
            let done = match state {
                Ok(ConnectionState::WriteTraffic(mut traffic)) => Some(send(&mut traffic)?),
                Ok(ConnectionState::EncodeTlsData(mut data)) => encode(&mut data, &mut self.outgoing).map(|()| None)?,
                Ok(ConnectionState::TransmitTlsData(data)) => {
                    data.done();
                    None
                }
                Ok(ConnectionState::PeerClosed) => {
                    self.ended = true;
                    None
                }
                Ok(_) => return Err(io::ErrorKind::BrokenPipe.into()),
                Err(error) => {
                    self.fail();
                    return Err(invalid(error));
                }
            };
            self.incoming.drain(..discard);
            if let Some(done) = done {
                return Ok(done);
            }
        }
    }

    fn write(&mut self, cx: &mut Context<'_>, slices: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        ready!(self.poll_send(cx))?;
        let mut batch = BATCH.take();
        let written = self.write_batch(cx, slices, &mut batch);
        BATCH.set(batch);
        Poll::Ready(written)
    }

    fn write_batch(&mut self, cx: &mut Context<'_>, slices: &[IoSlice<'_>], batch: &mut Batch) -> io::Result<usize> {
        let (taken, len) = self.sending(|traffic| batch.fill(traffic, slices))?;
        let mut records = batch.sealed.get(..len).unwrap_or_default();
        // TLS may have messages of its own, which must go first; this is rare.
        while self.outgoing.is_empty() && !records.is_empty() {
            match Pin::new(&mut self.socket).poll_write(cx, records)? {
                Poll::Ready(0) => return Err(io::ErrorKind::WriteZero.into()),
                Poll::Ready(count) => records = records.get(count..).unwrap_or_default(),
                Poll::Pending => break,
            }
        }
        self.outgoing.extend_from_slice(records);
        Ok(taken)
    }

    /// Seals the alert that closes the relay's side.
    fn say_farewell(&mut self) -> io::Result<()> {
        let mut room = [0; FAREWELL_BYTES_MAX];
        let len = self.sending(|traffic| traffic.queue_close_notify(&mut room).map_err(io::Error::other))?;
        self.outgoing.extend_from_slice(room.get(..len).unwrap_or_default());
        Ok(())
    }
}

/// Encodes a message of TLS itself.
fn encode(data: &mut EncodeTlsData<'_, ServerConnectionData>, into: &mut BytesMut) -> io::Result<()> {
    if let Err(EncodeError::InsufficientSize(short)) = data.encode(&mut []) {
        let at = into.len();
        into.resize(at + short.required_size, 0);
        data.encode(into.get_mut(at..).unwrap_or_default())
            .map_err(io::Error::other)?;
    }
    Ok(())
}

fn invalid(error: rustls::Error) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

impl<S> fmt::Debug for Sealed<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sealed").finish_non_exhaustive()
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Sealed<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = into.filled().len();
        while self.opened.is_empty() {
            if self.ended || self.failed {
                return Poll::Ready(Ok(()));
            }
            let received = ready!(self.poll_receive(cx, into));
            // TLS may have a message of its own. If it cannot be sent now, the next write sends it.
            let sent = self.poll_send(cx);
            received?;
            if let Poll::Ready(sent) = sent {
                sent?;
            }
            if into.filled().len() > before {
                return Poll::Ready(Ok(()));
            }
        }
        let count = self.opened.len().min(into.remaining());
        into.put_slice(&self.opened.split_to(count));
        if self.opened.is_empty() {
            self.opened = BytesMut::new();
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Sealed<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.write(cx, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.write(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_send(cx))?;
        Pin::new(&mut self.socket).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.closing {
            self.closing = true;
            // A failed connection sends no closing alert.
            drop(self.say_farewell());
        }
        ready!(self.poll_send(cx))?;
        Pin::new(&mut self.socket).poll_shutdown(cx)
    }
}
