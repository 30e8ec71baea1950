// SPDX-License-Identifier: Apache-2.0
//! The sockets that clients connect to.
//!
//! Owns the kinds of sockets and their options. Knows nothing of the protocol on them.

use std::fmt;
use std::io::{self, IoSlice};
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::task::{Context, Poll};

use rustls_pki_types::CertificateDer;
use socket2::{Domain, SockAddr, SockRef, Type};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};

use super::{Sealed, socket_file};
use crate::config::{SocketFile, is_abstract, system_path};

/// A bound address.
#[derive(Debug)]
pub enum Listener {
    /// A TCP port.
    Tcp(TcpListener),
    /// A Unix domain socket. Dropping the listener removes the file.
    Unix(UnixListener, PathBuf),
}

/// A client's connection.
#[derive(Debug)]
pub enum Socket {
    /// Over TCP.
    Tcp(TcpStream),
    /// Over a Unix domain socket.
    Unix(UnixStream),
    /// Over TLS on one of these; the handshake is complete.
    Secure(Box<Sealed<Self>>),
}

/// Where a connection comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// From this address.
    Tcp(SocketAddr),
    /// From this machine.
    Unix,
}

/// The most unsent bytes that the kernel accepts for a connection. Without this limit, a client that stops reading costs
/// megabytes in the kernel. The limit costs no throughput.
const UNSENT_BYTES_MAX: u32 = 128 * 1024;
/// The most connections that wait to be accepted.
const BACKLOG: i32 = 4096;

impl Listener {
    /// Binds a TCP port.
    ///
    /// # Errors
    /// When the address cannot be bound.
    pub fn tcp(address: SocketAddr) -> io::Result<Self> {
        let socket = socket2::Socket::new(Domain::for_address(address), Type::STREAM, None)?;
        socket.set_reuse_address(true)?;
        socket.set_nonblocking(true)?;
        socket.bind(&address.into())?;
        socket.listen(BACKLOG)?;
        TcpListener::from_std(socket.into()).map(Self::Tcp)
    }

    /// Binds a Unix domain socket. Replaces the socket file of a process that no longer runs.
    ///
    /// # Errors
    /// When the path cannot be bound, is the socket of a running process or another kind of file, or cannot get its owner or mode.
    pub fn unix(path: &Path, file: &SocketFile) -> io::Result<Self> {
        let has_file = !is_abstract(path);
        if has_file {
            remove_stale(path)?;
        }
        let socket = socket2::Socket::new(Domain::UNIX, Type::STREAM, None)?;
        socket.set_nonblocking(true)?;
        socket.bind(&SockAddr::unix(system_path(path))?)?;
        if has_file && let Err(error) = socket_file::set(path, file) {
            drop(std::fs::remove_file(path));
            return Err(error);
        }
        socket.listen(BACKLOG)?;
        UnixListener::from_std(socket.into()).map(|listener| Self::Unix(listener, path.to_owned()))
    }

    /// Returns the bound address of a TCP listener.
    pub fn tcp_address(&self) -> Option<SocketAddr> {
        match self {
            Self::Tcp(listener) => listener.local_addr().ok(),
            Self::Unix(..) => None,
        }
    }

    /// Returns the next connection.
    ///
    /// # Errors
    /// When the kernel cannot accept a connection; a later call may succeed.
    pub async fn accept(&self) -> io::Result<(Socket, Peer)> {
        match self {
            Self::Tcp(listener) => {
                let (stream, address) = listener.accept().await?;
                set_options(&stream);
                Ok((Socket::Tcp(stream), Peer::Tcp(address)))
            }
            Self::Unix(listener, _) => {
                let (stream, _) = listener.accept().await?;
                Ok((Socket::Unix(stream), Peer::Unix))
            }
        }
    }
}

impl Socket {
    /// Returns the user and the group of the process that connected, if it did so over a Unix socket.
    pub fn credentials(&self) -> Option<(u32, u32)> {
        let Self::Unix(stream) = self else { return None };
        let credentials = stream.peer_cred().ok()?;
        Some((credentials.uid(), credentials.gid()))
    }

    /// Returns the certificate that the client has shown. The handshake has verified it.
    pub fn certificate(&self) -> Option<&CertificateDer<'static>> {
        match self {
            Self::Secure(sealed) => sealed.certificate(),
            Self::Tcp(_) | Self::Unix(_) => None,
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Self::Unix(_, path) = self
            && !is_abstract(path)
        {
            // The file may be gone already, and nothing can be done about another failure.
            drop(std::fs::remove_file(path));
        }
    }
}

/// Sets the options of a new connection. This fails if the client is already gone; the next read reports that.
fn set_options(stream: &TcpStream) {
    let options = stream.set_nodelay(true);
    #[cfg(target_os = "linux")]
    let options = options.and_then(|()| SockRef::from(stream).set_tcp_notsent_lowat(UNSENT_BYTES_MAX));
    if let Err(error) = options {
        tracing::debug!(%error, "cannot set the options of a client's socket");
    }
}

fn remove_stale(path: &Path) -> io::Result<()> {
    let found = match std::fs::symlink_metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    if !found.file_type().is_socket() {
        return Err(io::Error::new(
            io::ErrorKind::AlreadyExists,
            "a file with this name exists and is not a socket",
        ));
    }
    if std::os::unix::net::UnixStream::connect(path).is_ok() {
        return Err(io::Error::new(
            io::ErrorKind::AddrInUse,
            "another process listens on this socket",
        ));
    }
    std::fs::remove_file(path)
}

impl AsyncRead for Socket {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_read(cx, into),
            Self::Unix(stream) => Pin::new(stream).poll_read(cx, into),
            Self::Secure(stream) => Pin::new(stream).poll_read(cx, into),
        }
    }
}

impl AsyncWrite for Socket {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_write(cx, bytes),
            Self::Unix(stream) => Pin::new(stream).poll_write(cx, bytes),
            Self::Secure(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_write_vectored(cx, slices),
            Self::Unix(stream) => Pin::new(stream).poll_write_vectored(cx, slices),
            Self::Secure(stream) => Pin::new(stream).poll_write_vectored(cx, slices),
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_flush(cx),
            Self::Unix(stream) => Pin::new(stream).poll_flush(cx),
            Self::Secure(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Unix(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Secure(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}

impl Peer {
    /// Returns the address, without the port.
    pub const fn address(&self) -> Option<IpAddr> {
        match self {
            Self::Tcp(address) => Some(address.ip()),
            Self::Unix => None,
        }
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix => f.write_str("unix"),
        }
    }
}
