//! The beginning of a sealed connection.
//!
//! Owns what is said until both sides agree. Refuses to know how many begin, and how long it may take.

use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::BytesMut;
use rustls::server::UnbufferedServerConnection;
use rustls::{HandshakeKind, ServerConfig};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, ReadBuf};

use super::{RECORD_BYTES_MAX, Sealed};

/// The kind of record with which every client begins.
pub const HANDSHAKE: u8 = 22;
/// A hello is rarely longer.
const HELLO_BYTES: usize = 2048;

/// What a client says first: a whole record, or as much as it takes to see that it will be none.
///
/// # Errors
/// When the connection ends before.
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
    /// Agrees with a client that has said `hello`.
    ///
    /// # Errors
    /// When there is no agreement, in the words of [`rustls::Error`], or the connection fails.
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
            // The client was told why, as far as its socket takes it.
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

    /// Whether this goes on where an earlier connection ended.
    #[must_use]
    pub fn resumed(&self) -> bool {
        self.tls.handshake_kind() == Some(HandshakeKind::Resumed)
    }
}
