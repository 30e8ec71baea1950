// SPDX-License-Identifier: Apache-2.0
//! Whether a server was reached at all, before any client needs it.
//!
//! Owns the attempts until the first connection, and what operators see of them. Knows nothing of streams and polls.

use std::time::Duration;

use tokio::sync::watch;

use super::away::Away;
use super::clock::{dice, now};
use super::failure::Failure;
use super::status::{AnswerCount, Board, StreamPhase, StreamStatus};
use crate::clock;
use crate::protocol::Backoff;
use crate::telemetry::UpstreamMetrics;
use crate::xds::Dialect;

/// The first contact with one server.
#[derive(Debug)]
pub(super) struct Contact {
    board: Board,
    tried: watch::Sender<Tried>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Tried {
    #[default]
    Never,
    Failed,
    Reached,
}

/// What is shown while the attempts go on; dropping it ends that.
struct OpeningShown<'a>(&'a Board);

impl Drop for OpeningShown<'_> {
    fn drop(&mut self) {
        self.0.enter(StreamPhase::Idle, Dialect::Delta);
    }
}

impl Contact {
    pub(super) fn new() -> Self {
        Self {
            board: Board::new(Dialect::Delta, AnswerCount::default()),
            tried: watch::Sender::default(),
        }
    }

    /// Returns the state of the attempts while they go on.
    pub(super) fn status(&self) -> Option<StreamStatus> {
        Some(self.board.read()).filter(|status| status.phase != StreamPhase::Idle)
    }

    /// The server was reached.
    pub(super) fn reached(&self) {
        self.set(Tried::Reached);
    }

    /// Waits until an attempt has failed; for ever if one succeeds before.
    pub(super) async fn failed(&self) {
        self.is(Tried::Failed).await;
    }

    /// Connects again and again until one connection succeeds, or a stream or poll shows that the server is there. Returns at once
    /// if it was reached before.
    pub(super) async fn make<F: Future<Output = Result<(), Failure>>>(
        &self,
        server: &str,
        (away, metrics): (&Away, &UpstreamMetrics),
        reconnect_max: Duration,
        meet: impl Fn() -> F,
    ) {
        let attempts = async {
            let mut backoff = Backoff::new(reconnect_max);
            let _shown = OpeningShown(&self.board);
            loop {
                self.board.enter(StreamPhase::Connecting, Dialect::Delta);
                let Err(failure) = meet().await else { return };
                let wait = backoff.handle_failure(dice());
                self.board.fail(false);
                self.board.wait(now() + wait, Some(failure.to_string()));
                metrics.failures.inc();
                if let Some(suppressed) = away.failed(failure.is_refusal(), now()) {
                    tracing::warn!(server, error = %failure, retry_in = ?wait, suppressed, "control plane not reached");
                }
                self.set(Tried::Failed);
                clock::sleep(wait).await;
            }
        };
        tokio::select! {
            biased;
            () = self.is(Tried::Reached) => return,
            () = attempts => {}
        }
        self.reached();
        tracing::info!(server, "control plane reached");
    }

    fn set(&self, tried: Tried) {
        self.tried.send_if_modified(|now| {
            let news = *now != Tried::Reached && *now != tried;
            if news {
                *now = tried;
            }
            news
        });
    }

    async fn is(&self, tried: Tried) {
        let mut now = self.tried.subscribe();
        // The sender is in `self`.
        let _ = now.wait_for(|now| *now == tried).await;
    }
}
