// SPDX-License-Identifier: Apache-2.0
//! Other relays, which are asked once for their snapshots.
//!
//! Owns how many are asked, and for how long. Does not know how their answers are read, nor which views want which snapshot.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream::{self, StreamExt as _};
use http::header::{HOST, USER_AGENT};
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;

use tokio::sync::mpsc;

use super::received::Received;
use super::spawn;
use super::taking::{AnswerRoom, StopReading, Taking};
use crate::clock;
use crate::config::{Config, Credentials, Endpoint, MemoryLimit, NeighbourSettings};
use crate::telemetry::{Metrics, TurnTimes};
use crate::tls::HTTP1;
use crate::upstream::{Failure, connect, host, reason};
use crate::xds::Types;

/// The relays that are asked.
pub(super) struct Neighbours {
    from: Vec<NeighbourSettings>,
    secrets: bool,
    types: Types,
    memory: MemoryLimit,
    metrics: Arc<Metrics>,
}

/// One address of a neighbour.
struct Door<'a> {
    neighbour: &'a NeighbourSettings,
    address: SocketAddr,
}

/// Why nothing came from a neighbour.
#[derive(Debug, thiserror::Error)]
enum NoSnapshot {
    #[error(transparent)]
    Unreached(#[from] Failure),
    #[error("{}", reason(.0))]
    Broken(#[from] hyper::Error),
    #[error("it answers {status}: {said}")]
    Status { status: u16, said: String },
    #[error("it did not begin to answer within {HEAD:?}")]
    Silent,
    #[error(transparent)]
    Unfit(#[from] StopReading),
    #[error("the thread that reads a snapshot ended")]
    Lost,
}

/// How long a neighbour may take until it begins to answer...
const HEAD: Duration = Duration::from_secs(2);
/// ... and all of them until they have answered: clients may wait for that, and are sent away after ten seconds without an answer.
const ALL: Duration = Duration::from_secs(5);
/// From how many snapshots are taken: they know much the same, but each has clients that no other has.
const TAKEN: usize = 3;
/// How many addresses are tried.
const TRIED: usize = 16;
/// How much of a refusal is told.
const SAID_BYTES: usize = 300;
/// How many parts of an answer wait to be read.
const PARTS: usize = 4;
const AGENT: &str = concat!("distributary/", env!("CARGO_PKG_VERSION"));

impl Neighbours {
    pub(super) fn new(config: &Config, types: Types, metrics: &Arc<Metrics>) -> Self {
        let snapshot = config.snapshot.as_ref();
        Self {
            from: snapshot.map(|snapshot| snapshot.from.clone()).unwrap_or_default(),
            secrets: snapshot.is_some_and(|snapshot| snapshot.include_secrets),
            types,
            memory: config.limits.memory,
            metrics: metrics.clone(),
        }
    }

    /// Asks them, some at a time, until enough have answered or the time is over.
    pub(super) async fn ask(&self, received: &Arc<Received>) {
        if self.from.is_empty() {
            return;
        }
        let room = &Arc::new(AnswerRoom::new(self.memory));
        let asked = async {
            let doors = self.doors().await;
            let mut answers: Vec<BoxFuture<'_, _>> = Vec::new();
            for door in &doors {
                answers.push(Box::pin(async move { (door, self.take(door, room, received).await) }));
            }
            let mut answers = stream::iter(answers).buffer_unordered(TAKEN);
            let mut taken = 0;
            while let Some((door, answer)) = answers.next().await {
                match answer {
                    Ok(snapshots) => {
                        taken += 1;
                        tracing::info!(neighbour = door.neighbour.uri, address = %door.address, snapshots, "a neighbour has given its snapshots");
                    }
                    Err(error) => self.refused(door, &error),
                }
                if taken == TAKEN {
                    break;
                }
            }
        };
        if clock::timeout(ALL, asked).await.is_none() {
            self.metrics.snapshots.not_received.inc();
            tracing::warn!(after = ?ALL, "neighbours take too long to give their snapshots; what has come is used");
        }
    }

    fn refused(&self, door: &Door<'_>, error: &NoSnapshot) {
        // A name stands for this relay, too, and for others that start with it.
        if let NoSnapshot::Status { status: 503, said } = error {
            tracing::info!(neighbour = door.neighbour.uri, address = %door.address, said, "a neighbour has no snapshot to give");
            return;
        }
        self.metrics.snapshots.not_received.inc();
        tracing::warn!(neighbour = door.neighbour.uri, address = %door.address, %error, "a neighbour gives no snapshots; the control plane is asked");
    }

    /// Returns the addresses of all neighbours in no particular order, so that not all relays ask the same ones.
    async fn doors(&self) -> Vec<Door<'_>> {
        let mut doors = Vec::new();
        for neighbour in &self.from {
            let Endpoint::Tcp { host, port } = &neighbour.endpoint else {
                continue;
            };
            match tokio::net::lookup_host((host.as_str(), *port)).await {
                Ok(found) => doors.extend(found.map(|address| Door { neighbour, address })),
                Err(error) => {
                    self.metrics.snapshots.not_received.inc();
                    tracing::warn!(neighbour = neighbour.uri, %error, "the name of a neighbour has no address");
                }
            }
        }
        let shuffled = std::hash::RandomState::new();
        doors.sort_by_cached_key(|door| std::hash::BuildHasher::hash_one(&shuffled, door.address));
        doors.truncate(TRIED);
        doors
    }

    /// Takes all snapshots of one neighbour, each when it is complete. Returns how many there are. They are read as they come, on a
    /// thread where that may take long.
    async fn take(
        &self,
        door: &Door<'_>,
        room: &Arc<AnswerRoom>,
        received: &Arc<Received>,
    ) -> Result<usize, NoSnapshot> {
        let mut body = clock::timeout(HEAD, self.begun(door))
            .await
            .unwrap_or(Err(NoSnapshot::Silent))?;
        let taking = Taking::new(room, &self.types, self.secrets);
        let (parts, mut of) = mpsc::channel::<Bytes>(PARTS);
        let (received, metrics) = (received.clone(), self.metrics.clone());
        let read = tokio::task::spawn_blocking(move || {
            let mut taking = taking;
            while let Some(part) = of.blocking_recv() {
                taking.read(&part, &mut |snapshot| {
                    let new = received.add(snapshot);
                    metrics.snapshots.received.inc_by(u64::from(new));
                    new
                })?;
            }
            taking.finish()
        });
        while let Some(frame) = body.frame().await {
            let Ok(data) = frame?.into_data() else { continue };
            if parts.send(data).await.is_err() {
                break;
            }
        }
        drop(parts);
        Ok(read.await.map_err(|_| NoSnapshot::Lost)??)
    }

    /// Asks, and returns the answer if it is one. A neighbour whose rules give no secrets is asked for the rest.
    async fn begun(&self, door: &Door<'_>) -> Result<Incoming, NoSnapshot> {
        let Door { neighbour, address } = door;
        let turns = &self.metrics.turns.other;
        if self.secrets && neighbour.credentials != Credentials::Insecure {
            match door.get("/snapshots?secrets=true", turns).await {
                Err(NoSnapshot::Status { status: 403, said }) => {
                    tracing::warn!(neighbour = neighbour.uri, %address, said, "a neighbour gives no keys and certificates; it is asked for the rest");
                }
                answered => return answered,
            }
        }
        door.get("/snapshots", turns).await
    }
}

impl Door<'_> {
    async fn get(&self, path: &'static str, turns: &TurnTimes) -> Result<Incoming, NoSnapshot> {
        let Self { neighbour, address } = self;
        let endpoint = Endpoint::Tcp {
            host: address.ip().to_string(),
            port: address.port(),
        };
        let name = host(&neighbour.endpoint);
        let connected = connect(&endpoint, name, &neighbour.credentials, HTTP1, Duration::ZERO).await?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(connected.io)).await?;
        // It ends with the answer.
        drop(spawn(turns, async move { drop(connection.await) }));
        let mut request = http::Request::new(Empty::<Bytes>::new());
        *request.uri_mut() = http::Uri::from_static(path);
        let headers = request.headers_mut();
        headers.insert(USER_AGENT, http::HeaderValue::from_static(AGENT));
        if let Ok(host) = http::HeaderValue::try_from(address.to_string()) {
            headers.insert(HOST, host);
        }
        let answer = sender.send_request(request).await?;
        let status = answer.status();
        let body = answer.into_body();
        if status == http::StatusCode::OK {
            return Ok(body);
        }
        let said = Limited::new(body, SAID_BYTES).collect().await;
        let said = said.map(|said| said.to_bytes()).unwrap_or_default();
        Err(NoSnapshot::Status {
            status: status.as_u16(),
            said: String::from_utf8_lossy(&said).trim().to_owned(),
        })
    }
}
