// SPDX-License-Identifier: Apache-2.0
//! Where visitors of the admin address and of the probes connect.
//!
//! Owns the kinds of sockets, and TLS on them. Does not decide who is admitted.

use std::io;
use std::net::{self, SocketAddr};
use std::os::unix::net as unix;
use std::path::Path;
use std::sync::Arc;

use socket2::SockRef;
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio_rustls::TlsAcceptor;

use super::guard::Visitor;
use super::reception::Conversation;
use crate::config::{Address, is_abstract, system_path};
use crate::tls::{self, ServerTls};

/// A listener that is not registered with a runtime yet.
pub(super) enum BoundListener {
    Socket(net::TcpListener),
    Unix(unix::UnixListener),
}

/// A listener.
pub(super) enum Entrance {
    Plain(TcpListener),
    Secure(TcpListener, Arc<ServerTls>),
    Unix(UnixListener),
}

/// A connection of which nothing was read.
pub(super) enum SilentVisitor {
    Plain(TcpStream, SocketAddr),
    Secure(TcpStream, SocketAddr, Arc<ServerTls>),
    Unix(UnixStream),
}

/// The most connections that wait to be accepted. What is above that has to try again a second later.
const BACKLOG: i32 = 1024;

impl BoundListener {
    /// Binds this address. Also returns it with the port that the system chose for port 0.
    pub(super) fn bind(address: &Address) -> io::Result<(Self, Address)> {
        Ok(match address {
            Address::Socket(socket) => {
                let listener = net::TcpListener::bind(socket)?;
                // The standard library lets only a few wait.
                SockRef::from(&listener).listen(BACKLOG)?;
                listener.set_nonblocking(true)?;
                let bound = Address::Socket(listener.local_addr()?);
                (Self::Socket(listener), bound)
            }
            Address::Unix(path) => {
                let listener = bind_unix(path)?;
                listener.set_nonblocking(true)?;
                (Self::Unix(listener), address.clone())
            }
        })
    }

    /// Opens it. To be called within a runtime.
    pub(super) fn open(self, tls: Option<Arc<ServerTls>>) -> io::Result<Entrance> {
        Ok(match (self, tls) {
            (Self::Socket(listener), None) => Entrance::Plain(TcpListener::from_std(listener)?),
            (Self::Socket(listener), Some(tls)) => Entrance::Secure(TcpListener::from_std(listener)?, tls),
            (Self::Unix(listener), _) => Entrance::Unix(UnixListener::from_std(listener)?),
        })
    }
}

/// Binds a Unix socket. Replaces a socket file that a dead process has left, to which nobody answers.
fn bind_unix(path: &Path) -> io::Result<unix::UnixListener> {
    if is_abstract(path) {
        let socket = socket2::Socket::new(socket2::Domain::UNIX, socket2::Type::STREAM, None)?;
        socket.bind(&socket2::SockAddr::unix(system_path(path))?)?;
        socket.listen(BACKLOG)?;
        return Ok(socket.into());
    }
    match unix::UnixListener::bind(path) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            if unix::UnixStream::connect(path).is_ok() {
                return Err(error);
            }
            std::fs::remove_file(path)?;
            unix::UnixListener::bind(path)
        }
        bound => bound,
    }
}

impl Entrance {
    /// Waits for the next connection.
    pub(super) async fn accept(&self) -> io::Result<SilentVisitor> {
        Ok(match self {
            Self::Plain(listener) => {
                let (socket, peer) = listener.accept().await?;
                SilentVisitor::Plain(socket, peer)
            }
            Self::Secure(listener, tls) => {
                let (socket, peer) = listener.accept().await?;
                SilentVisitor::Secure(socket, peer, tls.clone())
            }
            Self::Unix(listener) => SilentVisitor::Unix(listener.accept().await?.0),
        })
    }
}

impl SilentVisitor {
    /// Shakes hands if there is TLS, and lets the visitor ask.
    pub(super) async fn visit(self, conversation: Conversation) {
        match self {
            Self::Plain(socket, peer) => conversation.hold(socket, Visitor::from(peer)).await,
            Self::Unix(socket) => {
                let visitor = Visitor::local(&socket);
                conversation.hold(socket, visitor).await;
            }
            Self::Secure(socket, peer, tls) => match TlsAcceptor::from(tls.config()).accept(socket).await {
                Ok(stream) => {
                    let visitor = Visitor::from(peer).certified(stream.get_ref().1.peer_certificates());
                    conversation.hold(stream, visitor).await;
                }
                Err(error) => {
                    let why = tls::handshake(&error, "client");
                    tracing::debug!(%peer, reason = why, "no TLS on the admin address");
                }
            },
        }
    }
}
