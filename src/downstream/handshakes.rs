// SPDX-License-Identifier: Apache-2.0
//! TLS handshakes with clients.
//!
//! Owns how many are worked on at the same time, how long each may take, and the error texts. Knows nothing of the protocol after
//! the handshake, nor of the identity in a certificate.

use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use rustls::Error;
use tokio::sync::Semaphore;

use crate::clock;
use crate::telemetry::HandshakeResult;
use crate::tls::{self, ServerTls};
use crate::wire::{Sealed, Socket, hello, is_proxy_header};

/// The handshakes of one listener.
#[derive(Debug)]
pub struct Handshakes {
    tls: Arc<ServerTls>,
    /// Held while a hello is answered, which is most of the work, but not while waiting for the client's next message.
    places: Semaphore,
}

/// Why a TLS connection was not established.
#[derive(Debug, thiserror::Error)]
pub(super) enum HandshakeFault {
    #[error("the client did not begin within {0:?}")]
    Silent(Duration),
    #[error("not begun within {0:?}: too many handshakes at the same time; add relays")]
    Crowded(Duration),
    #[error("the client did not finish within {0:?}")]
    Slow(Duration),
    #[error("{}", tls::handshake(.0, "client"))]
    Failed(io::Error),
    #[error("the connection begins with a PROXY header")]
    Stranger,
    #[error("the client uses TLS, but this listener does not; configure `tls` here, or switch TLS off in the client")]
    Plaintext,
}

impl Handshakes {
    /// Creates the handshakes with this TLS. At most `handshakes_max` hellos are answered at the same time.
    #[must_use]
    pub fn new(tls: Arc<ServerTls>, handshakes_max: usize) -> Self {
        Self {
            tls,
            places: Semaphore::new(handshakes_max.min(Semaphore::MAX_PERMITS)),
        }
    }

    /// The TLS of the listener.
    pub const fn tls(&self) -> &Arc<ServerTls> {
        &self.tls
    }

    /// Completes the handshake. Returns the connection, and whether it resumed an earlier session. Hellos are answered in order
    /// of arrival, and few at a time, so that established connections have their turns in between. A client that stops after
    /// its hello blocks nobody.
    pub(super) async fn shake(&self, mut socket: Socket, bound: Duration) -> Result<(Socket, bool), HandshakeFault> {
        let mut over = pin!(clock::sleep(bound));
        let hello = within(over.as_mut(), hello(&mut socket)).await;
        let hello = hello
            .ok_or(HandshakeFault::Silent(bound))?
            .map_err(HandshakeFault::Failed)?;
        if is_proxy_header(&hello) {
            return Err(HandshakeFault::Stranger);
        }
        let place = within(over.as_mut(), self.places.acquire()).await;
        let place = place.ok_or(HandshakeFault::Crowded(bound))?;
        let mut shaking = pin!(Sealed::accept(socket, hello, self.tls.config()));
        // The first poll does most of the work; later ones only wait for the client.
        let answered = poll_fn(|cx| Poll::Ready(shaking.as_mut().poll(cx))).await;
        drop(place);
        let shaken = match answered {
            Poll::Ready(shaken) => Some(shaken),
            Poll::Pending => within(over.as_mut(), shaking).await,
        };
        let sealed = shaken
            .ok_or(HandshakeFault::Slow(bound))?
            .map_err(HandshakeFault::Failed)?;
        let resumed = sealed.resumed();
        Ok((Socket::Secure(Box::new(sealed)), resumed))
    }
}

impl HandshakeFault {
    /// Returns the fault as one word, for the metric.
    pub(super) fn reason(&self) -> &'static str {
        let error = match self {
            Self::Silent(_) | Self::Slow(_) => return "timeout",
            Self::Crowded(_) => return "crowded",
            Self::Stranger => return "not_tls",
            Self::Plaintext => return "no_tls_here",
            Self::Failed(error) => error,
        };
        let Some(error) = tls::said(error) else {
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

    /// Returns the fault in gRPC's words (A118), or none if the client and the listener did not both want TLS.
    pub(super) fn result(&self) -> Option<HandshakeResult> {
        match self {
            Self::Silent(_) | Self::Slow(_) | Self::Crowded(_) => Some(HandshakeResult::HandshakeTimeout),
            Self::Failed(error) => Some(tls::result(error)),
            Self::Stranger | Self::Plaintext => None,
        }
    }

    /// Whether the fault is worth a log line. TCP probes and clients that disconnect are frequent and mean nothing.
    pub(super) fn is_news(&self) -> bool {
        !matches!(self.reason(), "closed" | "timeout")
    }
}

/// Returns the result of the work, or none if the time is over first.
async fn within<T>(over: Pin<&mut clock::Sleep>, work: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        biased;
        () = over => None,
        done = work => Some(done),
    }
}
