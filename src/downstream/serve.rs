// SPDX-License-Identifier: Apache-2.0
//! A listener and its connections.
//!
//! Owns the accept loop, which a failing connection does not stop.

use std::sync::Arc;
use std::time::Duration;

use super::admission::{Admission, Guest};
use super::call::Calls;
use super::connection::{self, Connection};
use super::entrance::Entrance;
use super::full::LimitReached;
use super::shared::Shared;
use crate::clock;
use crate::shutdown::Drain;
use crate::wire::{Listener, Peer};

/// How long an accept loop waits after an error, so that it does not spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Accepts connections until the drain begins. Each connection holds a [`Drain`] of its own and ends by itself.
pub async fn serve(listener: Listener, entrance: Arc<Entrance>, shared: Arc<Shared>, drain: Drain) {
    let calls = Arc::new(Calls::new(shared, drain.clone()));
    let mut stop = drain.clone();
    let mut draining = std::pin::pin!(stop.draining());
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = &mut draining => return,
        };
        match accepted {
            Ok((socket, peer)) => match admit(&calls.shared.admission, peer, &entrance) {
                Ok(guest) => connection::start(Connection {
                    calls: calls.clone(),
                    socket,
                    peer,
                    guest,
                    entrance: entrance.clone(),
                    drain: drain.clone(),
                }),
                Err(full) => calls.not_admitted(&peer, &full),
            },
            Err(error) => {
                calls.not_accepted(&error);
                clock::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Admits a connection, unless a balancer still has to state from where it comes.
fn admit(admission: &Arc<Admission>, peer: Peer, entrance: &Entrance) -> Result<Guest, LimitReached> {
    let guest = admission.connection(peer)?;
    if entrance.expects_header(&peer) {
        return Ok(guest);
    }
    guest.at(peer)
}
