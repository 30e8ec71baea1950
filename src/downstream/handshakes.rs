//! The beginning of a TLS connection.
//!
//! Owns how many begin at the same time, how long each may take, and the words for why one failed. Refuses to know what is
//! spoken when it is over, and whose certificate it was.

use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use rustls::server::Acceptor;
use rustls::{Error, HandshakeKind, ServerConfig};
use tokio::sync::Semaphore;
use tokio::time::{Sleep, sleep};
use tokio_rustls::LazyConfigAcceptor;

use crate::wire::Socket;

/// How the connections of one listener begin.
#[derive(Debug)]
pub struct Handshakes {
    config: Arc<ServerConfig>,
    places: Places,
}

/// How many handshakes are under way at the same time; one bound for all listeners.
#[derive(Clone, Debug)]
pub struct Places(Arc<Semaphore>);

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub(super) enum Fault {
    #[error("the client did not begin within {0:?}")]
    Silent(Duration),
    #[error("no place within {0:?}: as many handshakes are under way as limits.handshakes allows")]
    Crowded(Duration),
    #[error("the client did not finish within {0:?}")]
    Slow(Duration),
    #[error("{0}; is TLS meant to be spoken to this listener?")]
    Foreign(io::Error),
    #[error("{0}")]
    Failed(io::Error),
    #[error("the client speaks TLS, and this listener does not; give it `tls`, or take TLS from the client")]
    Plaintext,
}

impl Places {
    /// So many.
    #[must_use]
    pub fn new(handshakes_max: usize) -> Self {
        Self(Arc::new(Semaphore::new(handshakes_max.min(Semaphore::MAX_PERMITS))))
    }
}

impl Handshakes {
    /// Handshakes in which the relay shows and asks what `config` says.
    #[must_use]
    pub const fn new(config: Arc<ServerConfig>, places: Places) -> Self {
        Self { config, places }
    }

    /// The connection, once both sides agree, and whether it goes on where another one ended. A client takes a place when its
    /// hello is there, in order, so that those that say nothing keep nobody out.
    pub(super) async fn shake(&self, socket: Socket, bound: Duration) -> Result<(Socket, bool), Fault> {
        let mut over = pin!(sleep(bound));
        let hello = within(over.as_mut(), LazyConfigAcceptor::new(Acceptor::default(), socket)).await;
        let hello = hello.ok_or(Fault::Silent(bound))?.map_err(Fault::of_hello)?;
        let place = within(over.as_mut(), self.places.0.acquire()).await;
        let place = place.ok_or(Fault::Crowded(bound))?;
        let shaken = within(over.as_mut(), hello.into_stream(self.config.clone())).await;
        drop(place);
        let stream = shaken.ok_or(Fault::Slow(bound))?.map_err(Fault::Failed)?;
        let resumed = stream.get_ref().1.handshake_kind() == Some(HandshakeKind::Resumed);
        Ok((Socket::Secure(Box::new(stream)), resumed))
    }
}

impl Fault {
    fn of_hello(error: io::Error) -> Self {
        match said(&error) {
            Some(Error::InvalidMessage(_)) => Self::Foreign(error),
            Some(_) | None => Self::Failed(error),
        }
    }

    /// The fault in a word, for those who count.
    pub(super) fn reason(&self) -> &'static str {
        let error = match self {
            Self::Silent(_) | Self::Slow(_) => return "timeout",
            Self::Crowded(_) => return "crowded",
            Self::Foreign(_) => return "not_tls",
            Self::Plaintext => return "no_tls_here",
            Self::Failed(error) => error,
        };
        let Some(error) = said(error) else {
            return "closed";
        };
        if matches!(error, Error::NoCertificatesPresented) {
            "no_certificate"
        } else if matches!(error, Error::InvalidCertificate(_)) {
            "bad_certificate"
        } else if matches!(error, Error::AlertReceived(_)) {
            "refused_by_client"
        } else if matches!(error, Error::PeerIncompatible(_) | Error::NoApplicationProtocol) {
            "incompatible"
        } else {
            "invalid"
        }
    }

    /// Whether it says anything to an operator: probes of TCP ports, and clients that are gone, are many and do not.
    pub(super) fn is_news(&self) -> bool {
        !matches!(self.reason(), "closed" | "timeout")
    }
}

/// What comes of it before the time is over.
async fn within<T>(over: Pin<&mut Sleep>, work: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        biased;
        () = over => None,
        done = work => Some(done),
    }
}

/// What TLS itself says, unless it was the socket.
fn said(error: &io::Error) -> Option<&Error> {
    error.get_ref()?.downcast_ref()
}
