//! TLS on the admin address.
//!
//! Owns the handshakes that are not complete yet: one that takes its time keeps nobody waiting. Does not decide who is admitted.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::serve::Listener;
use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::clock;
use crate::tls::{self, ServerTls};

/// A listener whose connections have completed their handshakes.
pub(super) struct Secured {
    listener: TcpListener,
    tls: Arc<ServerTls>,
    shaking: FuturesUnordered<BoxFuture<'static, Option<Established>>>,
}

type Established = (TlsStream<TcpStream>, SocketAddr);

/// How many handshakes there are at the same time; more clients wait in the system's queue.
const HANDSHAKES_MAX: usize = 64;
/// How long each may take.
const TIMEOUT: Duration = Duration::from_secs(10);
/// How long to wait after an error of the system, so that it is not repeated without end.
const PAUSE: Duration = Duration::from_millis(50);

impl Secured {
    pub(super) fn new(listener: TcpListener, tls: Arc<ServerTls>) -> Self {
        Self {
            listener,
            tls,
            shaking: FuturesUnordered::new(),
        }
    }

    fn begin(&self, socket: TcpStream, peer: SocketAddr) {
        let acceptor = TlsAcceptor::from(self.tls.config());
        self.shaking.push(Box::pin(async move {
            match clock::timeout(TIMEOUT, acceptor.accept(socket)).await {
                Some(Ok(stream)) => return Some((stream, peer)),
                Some(Err(error)) => {
                    let why = tls::handshake(&error, "client");
                    tracing::debug!(%peer, reason = why, "no TLS on the admin address");
                }
                None => tracing::debug!(%peer, "a client of the admin address did not finish its handshake"),
            }
            None
        }));
    }
}

impl Listener for Secured {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            tokio::select! {
                accepted = self.listener.accept(), if self.shaking.len() < HANDSHAKES_MAX => match accepted {
                    Ok((socket, peer)) => self.begin(socket, peer),
                    Err(error) => {
                        tracing::warn!(%error, "the admin address cannot accept a connection");
                        clock::sleep(PAUSE).await;
                    }
                },
                Some(shaken) = self.shaking.next() => {
                    if let Some(established) = shaken {
                        return established;
                    }
                }
            }
        }
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        self.listener.local_addr()
    }
}
