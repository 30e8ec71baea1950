// SPDX-License-Identifier: Apache-2.0
//! `/snapshots`: what is known of each view, for a relay that starts and has no snapshot of its own.
//!
//! Owns the form of the answer, who gets keys and certificates, and how long one may keep others waiting. Does not know what is in a
//! snapshot.

use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{Extension, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::IntoResponse as _;
use futures_util::stream;
use serde::Deserialize;
use tokio::sync::mpsc::{self, Receiver, Sender};

use super::Shown;
use super::forms::{self, Answered, Asked, Refused};
use super::guard::{self, Visitor};
use super::orders::RequestOrigin;
use super::turns::Turns;
use crate::clock;
use crate::config::AdminAction;
use crate::telemetry::RelayStatus;

/// The snapshots of all views, and whose turn it is to take them.
#[derive(Clone)]
pub struct Snapshots {
    list: Arc<dyn Fn(bool) -> Vec<Give> + Send + Sync>,
    turns: Arc<Turns>,
    pace: Pace,
}

/// How fast other relays take their turns.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// How long others wait for their turn.
    pub turn: Duration,
    /// How many bytes another relay must take in each second that it keeps this one waiting...
    pub bytes: u64,
    /// ... once it has done so for this long.
    pub grace: Duration,
}

/// Writes the snapshot of one view behind its length.
pub type Give = Box<dyn FnOnce(&mut dyn Write) -> io::Result<()> + Send>;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SnapshotQuery {
    #[serde(default)]
    secrets: bool,
}

/// How much is written before the other relay has to take some of it.
const PART_BYTES: usize = 64 << 10;

/// The part of an answer that is being written. `None` is its end: an answer without one was cut off.
struct SnapshotWriter {
    part: Vec<u8>,
    out: Sender<Option<Bytes>>,
}

impl Snapshots {
    /// Creates what `list` returns, with keys and certificates or without.
    #[must_use]
    pub fn new(pace: Pace, list: impl Fn(bool) -> Vec<Give> + Send + Sync + 'static) -> Self {
        Self {
            list: Arc::new(list),
            turns: Arc::default(),
            pace,
        }
    }
}

impl Default for Snapshots {
    /// None.
    fn default() -> Self {
        Self::new(Pace::default(), |_| Vec::new())
    }
}

impl Default for Pace {
    /// Others are patient for twice as long as they wait for their turn.
    fn default() -> Self {
        Self {
            turn: Duration::from_secs(1),
            bytes: 256 << 10,
            grace: Duration::from_secs(5),
        }
    }
}

pub(super) async fn answer(
    State(shown): State<Shown>,
    Extension(visitor): Extension<Visitor>,
    Extension(access): Extension<RequestOrigin>,
    headers: HeaderMap,
    Asked(SnapshotQuery { secrets }): Asked<SnapshotQuery>,
) -> Answered {
    if secrets {
        may_have_secrets(&shown, &visitor, &headers, access)?;
    }
    give(&shown, secrets, &visitor).await
}

/// Refuses keys and certificates without TLS, and to whom no rule allows them.
fn may_have_secrets(
    shown: &Shown,
    visitor: &Visitor,
    headers: &HeaderMap,
    access: RequestOrigin,
) -> Result<(), Refused> {
    if matches!(access, RequestOrigin::Plain(_)) {
        let why = "keys and certificates are given over TLS only; add `admin.tls`, or ask without secrets=true\n";
        return Err(Refused::new(StatusCode::FORBIDDEN, why));
    }
    guard::judge(&shown.guard, visitor, headers, AdminAction::Secrets).map(drop)
}

/// Each snapshot stands behind its length, as eight bytes, the least first.
#[expect(
    clippy::disallowed_methods,
    reason = "an answer is paced beside its connection, which may take nothing"
)]
async fn give(shown: &Shown, secrets: bool, visitor: &Visitor) -> Answered {
    if shown.health.status() == RelayStatus::Starting {
        let why = "this relay is starting itself, and has no snapshot to give\n";
        return Err(Refused::new(StatusCode::SERVICE_UNAVAILABLE, why));
    }
    let Snapshots { list, turns, pace } = &shown.snapshots;
    let Some(turn) = clock::timeout(pace.turn, turns.take(visitor.identity())).await else {
        return Err(forms::later(
            "others take snapshots, or you do so already; ask again in a few seconds\n",
        ));
    };
    let (snapshots, pace) = (list(secrets), *pace);
    let who = visitor.identity().to_string();
    tracing::info!(who, views = snapshots.len(), secrets, "another relay takes snapshots");
    let (written, parts) = mpsc::channel(1);
    let (paced, body) = mpsc::channel(1);
    let writing = tokio::task::spawn_blocking(move || write(snapshots, written));
    // It ends with the answer, or when that is taken too slowly.
    drop(tokio::spawn(async move {
        if let Err(waited) = pace.keep(parts, paced).await {
            tracing::warn!(
                who,
                ?waited,
                "another relay takes snapshots too slowly; its turn is over"
            );
        }
        drop(writing.await);
        drop(turn);
    }));
    let body = stream::unfold(body, async |mut parts| match parts.recv().await {
        Some(part) => Some((Ok(part?), parts)),
        None => Some((Err(io::Error::from(io::ErrorKind::TimedOut)), parts)),
    });
    let kind = [(header::CONTENT_TYPE, "application/octet-stream")];
    Ok((kind, Body::from_stream(body)).into_response())
}

/// Writes all snapshots, for as long as somebody takes them.
fn write(snapshots: Vec<Give>, out: Sender<Option<Bytes>>) {
    let part = Vec::with_capacity(PART_BYTES);
    let mut into = SnapshotWriter { part, out };
    let all = |give: Give| give(&mut into);
    // It fails only if nobody takes them any more.
    if snapshots.into_iter().try_for_each(all).is_ok() && into.flush().is_ok() {
        drop(into.out.blocking_send(None));
    }
}

impl Pace {
    /// Passes the parts on. The other relay is too slow once it has kept this one waiting for longer than it may; returns for how long.
    async fn keep(self, mut from: Receiver<Option<Bytes>>, to: Sender<Option<Bytes>>) -> Result<(), Duration> {
        let (mut taken, mut waited) = (0, Duration::ZERO);
        while let Some(part) = from.recv().await {
            let bytes = part.as_ref().map_or(0, Bytes::len) as u64;
            let may = (self.grace + Duration::from_millis(taken * 1000 / self.bytes.max(1))).saturating_sub(waited);
            let began = clock::now();
            match clock::timeout(may, to.send(part)).await {
                Some(Ok(())) => {}
                // It has hung up.
                Some(Err(_)) => return Ok(()),
                None => return Err(waited + may),
            }
            waited += clock::now().saturating_duration_since(began);
            taken += bytes;
        }
        Ok(())
    }
}

impl Write for SnapshotWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = PART_BYTES - self.part.len();
        let taken = bytes.get(..room).unwrap_or(bytes);
        self.part.extend_from_slice(taken);
        if self.part.len() == PART_BYTES {
            self.flush()?;
        }
        Ok(taken.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let part = std::mem::replace(&mut self.part, Vec::with_capacity(PART_BYTES));
        let sent = self.out.blocking_send(Some(part.into()));
        sent.map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}
