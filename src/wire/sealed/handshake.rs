// SPDX-License-Identifier: Apache-2.0
//! The TLS handshake of a client's connection.
//!
//! Owns all messages until the handshake is complete. Does not limit the number of handshakes, nor their time.

use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::BytesMut;
use rustls::server::UnbufferedServerConnection;
use rustls::{HandshakeKind, ServerConfig};
use rustls_pki_types::CertificateDer;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, ReadBuf};

use super::{RECORD_BYTES_MAX, Sealed};

/// The type of the first record of every client.
pub const HANDSHAKE: u8 = 22;
/// A client hello is rarely longer.
const HELLO_BYTES: usize = 2048;

/// Reads the first record of a client, or as much as shows that the bytes are not a TLS handshake.
///
/// # Errors
/// When the connection ends before that.
pub async fn hello(socket: &mut (impl AsyncRead + Unpin)) -> io::Result<Vec<u8>> {
    let mut said = Vec::with_capacity(HELLO_BYTES);
    loop {
        if let [kind, _, _, high, low, rest @ ..] = &*said {
            let length = usize::from(u16::from_be_bytes([*high, *low]));
            if *kind != HANDSHAKE || length > RECORD_BYTES_MAX || rest.len() >= length {
                return Ok(said);
            }
        }
        if socket.read_buf(&mut said).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Sealed<S> {
    /// Completes the handshake with a client that has sent `hello`.
    ///
    /// # Errors
    /// When the handshake fails (a [`rustls::Error`]), or the connection does.
    pub async fn accept(socket: S, mut hello: Vec<u8>, config: Arc<ServerConfig>) -> io::Result<Self> {
        let mut sealed = Self {
            socket,
            tls: UnbufferedServerConnection::new(config).map_err(io::Error::other)?,
            incoming: Vec::new(),
            opened: BytesMut::new(),
            outgoing: BytesMut::new(),
            ended: false,
            closing: false,
            failed: false,
        };
        let mut opened = sealed.open(&mut hello, &mut ReadBuf::new(&mut []));
        drop(hello);
        poll_fn(|cx| sealed.poll_agree(cx, &mut opened)).await?;
        Ok(sealed)
    }

    fn poll_agree(&mut self, cx: &mut Context<'_>, opened: &mut io::Result<()>) -> Poll<io::Result<()>> {
        loop {
            let sent = self.poll_send(cx);
            // Before this error ends the handshake, the alert was sent to the client, as far as its socket takes it.
            std::mem::replace(opened, Ok(()))?;
            ready!(sent)?;
            if !self.tls.is_handshaking() {
                return Poll::Ready(Ok(()));
            }
            if self.ended {
                return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()));
            }
            *opened = ready!(self.poll_receive(cx, &mut ReadBuf::new(&mut [])));
        }
    }

    /// Returns the client's certificate, also if this handshake resumed an earlier session.
    pub(in crate::wire) fn certificate(&self) -> Option<&CertificateDer<'static>> {
        self.tls.peer_certificates()?.first()
    }

    /// Whether this handshake resumed an earlier TLS session.
    pub fn resumed(&self) -> bool {
        self.tls.handshake_kind() == Some(HandshakeKind::Resumed)
    }
}
