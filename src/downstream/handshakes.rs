//! The beginning of a TLS connection.
//!
//! Owns how many are worked on at the same time, how long each may take, and the words for why one failed. Refuses to know what is
//! spoken when it is over, and whose certificate it was.

use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use rustls::{Error, ServerConfig};
use tokio::sync::Semaphore;

use crate::clock;
use crate::wire::{Sealed, Socket, hello};

/// How the connections of one listener begin.
#[derive(Debug)]
pub struct Handshakes {
    config: Arc<ServerConfig>,
    /// For the answer to a hello, which is most of the work, and not for the time in which the client answers in turn.
    places: Semaphore,
}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub(super) enum Fault {
    #[error("the client did not begin within {0:?}")]
    Silent(Duration),
    #[error("no place within {0:?}: too many clients begin at the same time (limits.handshakes)")]
    Crowded(Duration),
    #[error("the client did not finish within {0:?}")]
    Slow(Duration),
    #[error("{0}")]
    Failed(io::Error),
    #[error("the client speaks TLS, and this listener does not; give it `tls`, or take TLS from the client")]
    Plaintext,
}

impl Handshakes {
    /// Handshakes in which the relay shows and asks what `config` says; so many hellos at most are answered at the same time.
    #[must_use]
    pub fn new(config: Arc<ServerConfig>, handshakes_max: usize) -> Self {
        Self {
            config,
            places: Semaphore::new(handshakes_max.min(Semaphore::MAX_PERMITS)),
        }
    }

    /// The connection, once both sides agree, and whether it goes on where another one ended. Hellos are answered in the order in
    /// which they came, so few at a time that those who are in have their turns between them; a client that does not go on after
    /// that keeps nobody out.
    pub(super) async fn shake(&self, mut socket: Socket, bound: Duration) -> Result<(Socket, bool), Fault> {
        let mut over = pin!(clock::sleep(bound));
        let hello = within(over.as_mut(), hello(&mut socket)).await;
        let hello = hello.ok_or(Fault::Silent(bound))?.map_err(Fault::Failed)?;
        let place = within(over.as_mut(), self.places.acquire()).await;
        let place = place.ok_or(Fault::Crowded(bound))?;
        let mut shaking = pin!(Sealed::accept(socket, hello, self.config.clone()));
        // The first turn is the work; in those that follow the client has something to say.
        let answered = poll_fn(|cx| Poll::Ready(shaking.as_mut().poll(cx))).await;
        drop(place);
        let shaken = match answered {
            Poll::Ready(shaken) => Some(shaken),
            Poll::Pending => within(over.as_mut(), shaking).await,
        };
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
