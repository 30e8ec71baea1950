//! The beginning of a TLS connection.
//!
//! Owns how many begin at the same time, how long each may take, and the words for why one failed. Refuses to know what is
//! spoken when it is over, and whose certificate it was.

use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use rustls::{Error, ServerConfig};
use tokio::sync::Semaphore;

use crate::clock;
use crate::wire::{Sealed, Socket, sealed};

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
    pub(super) async fn shake(&self, mut socket: Socket, bound: Duration) -> Result<(Socket, bool), Fault> {
        let mut over = pin!(clock::sleep(bound));
        let hello = within(over.as_mut(), sealed::hello(&mut socket)).await;
        let hello = hello.ok_or(Fault::Silent(bound))?.map_err(Fault::Failed)?;
        let place = within(over.as_mut(), self.places.0.acquire()).await;
        let place = place.ok_or(Fault::Crowded(bound))?;
        let shaken = within(over.as_mut(), Sealed::accept(socket, hello, self.config.clone())).await;
        drop(place);
        let sealed = shaken.ok_or(Fault::Slow(bound))?.map_err(Fault::Failed)?;
        let resumed = sealed.resumed();
        Ok((Socket::Secure(Box::new(sealed)), resumed))
    }
}

impl Fault {
    /// The fault in a word, for those who count.
    pub(super) fn reason(&self) -> &'static str {
        let error = match self {
            Self::Silent(_) | Self::Slow(_) => return "timeout",
            Self::Crowded(_) => return "crowded",
            Self::Plaintext => return "no_tls_here",
            Self::Failed(error) => error,
        };
        let Some(error) = said(error) else {
            return "closed";
        };
        if matches!(error, Error::InvalidMessage(_)) {
            "not_tls"
        } else if matches!(error, Error::NoCertificatesPresented) {
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
async fn within<T>(over: Pin<&mut clock::Sleep>, work: impl Future<Output = T>) -> Option<T> {
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
