//! Other relays, which are asked once for their snapshots.
//!
//! Owns how many are asked, for how long, and how much is taken from them. Does not know which views want which snapshot.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::{Buf as _, Bytes, BytesMut};
use futures_util::future::BoxFuture;
use futures_util::stream::{self, StreamExt as _};
use http::header::{HOST, USER_AGENT};
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;

use super::received::Received;
use super::{plan, spawn};
use crate::clock;
use crate::config::{self, Credentials, Endpoint, Neighbour};
use crate::snapshot::{self, Snapshot};
use crate::telemetry::Metrics;
use crate::tls::HTTP1;
use crate::upstream::{Failure, connect, host};
use crate::xds::Types;

/// The relays that are asked.
pub(super) struct Neighbours {
    from: Vec<Neighbour>,
    secrets: bool,
    types: Types,
    metrics: Arc<Metrics>,
}

/// One address of a neighbour.
struct Door<'a> {
    neighbour: &'a Neighbour,
    address: SocketAddr,
}

/// Why nothing came from a neighbour.
#[derive(Debug, thiserror::Error)]
enum Refusal {
    #[error(transparent)]
    Unreached(#[from] Failure),
    #[error("it does not speak HTTP as an admin address does: {0}")]
    Broken(#[from] hyper::Error),
    #[error("it answers {status}: {said}")]
    Status { status: u16, said: String },
    #[error("it did not begin to answer within {HEAD:?}")]
    Silent,
    #[error("it sends more than {} MiB", BYTES_MAX >> 20)]
    Endless,
    #[error("its answer ends within a snapshot")]
    Torn,
    #[error("it sends what is no snapshot for this relay: {0}")]
    Unfit(#[from] snapshot::Fault),
    #[error("the thread that reads a snapshot ended")]
    Lost,
}

/// How long a neighbour may take until it begins to answer...
const HEAD: Duration = Duration::from_secs(2);
/// ... and all of them until they have answered: clients may wait for that, and are sent away after ten seconds without an answer.
const ALL: Duration = Duration::from_secs(5);
/// How many bytes are taken from all of them together.
const BYTES_MAX: u64 = 512 << 20;
/// From how many snapshots are taken: they know much the same, but each has clients that no other has.
const TAKEN: usize = 3;
/// How many addresses are tried.
const TRIED: usize = 16;
/// How much of a refusal is told.
const SAID_BYTES: usize = 300;
const LENGTH_BYTES: usize = size_of::<u64>();
const AGENT: &str = concat!("distributary/", env!("CARGO_PKG_VERSION"));

impl Neighbours {
    pub(super) fn new(snapshot: &config::Snapshot, types: Types, metrics: &Arc<Metrics>) -> Self {
        Self {
            from: snapshot.from.clone(),
            secrets: snapshot.include_secrets,
            types,
            metrics: metrics.clone(),
        }
    }

    /// Asks them, some at a time, until enough have answered or the time is over.
    pub(super) async fn ask(&self, received: &Received) {
        if self.from.is_empty() {
            return;
        }
        let left = &AtomicU64::new(BYTES_MAX);
        let asked = async {
            let doors = self.doors().await;
            let mut answers: Vec<BoxFuture<'_, _>> = Vec::new();
            for door in &doors {
                answers.push(Box::pin(async move { (door, self.take(door, left, received).await) }));
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

    fn refused(&self, door: &Door<'_>, error: &Refusal) {
        // A name stands for this relay, too, and for others that start with it.
        if let Refusal::Status { status: 503, said } = error {
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

    /// Takes all snapshots of one neighbour, each when it is complete. Returns how many there are.
    async fn take(&self, door: &Door<'_>, left: &AtomicU64, received: &Received) -> Result<usize, Refusal> {
        let body = clock::timeout(HEAD, self.begun(door))
            .await
            .unwrap_or(Err(Refusal::Silent))?;
        let (mut body, mut buffer, mut found) = (body, BytesMut::new(), 0);
        while let Some(frame) = body.frame().await {
            let Ok(data) = frame?.into_data() else { continue };
            let size = data.len() as u64;
            let less = |left: u64| left.checked_sub(size);
            if left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_err() {
                return Err(Refusal::Endless);
            }
            buffer.extend_from_slice(&data);
            while let Some(whole) = next(&mut buffer)? {
                found += 1;
                let Snapshot { of, cut } = self.read(whole).await?;
                if received.add(of, cut) {
                    self.metrics.snapshots.received.inc();
                }
            }
        }
        match buffer.is_empty() {
            true => Ok(found),
            false => Err(Refusal::Torn),
        }
    }

    /// Asks, and returns the answer if it is one. A neighbour whose rules give no secrets is asked for the rest.
    async fn begun(&self, door: &Door<'_>) -> Result<Incoming, Refusal> {
        let Door { neighbour, address } = door;
        if self.secrets && neighbour.credentials != Credentials::Insecure {
            match door.get("/snapshots?secrets=true").await {
                Err(Refusal::Status { status: 403, said }) => {
                    tracing::warn!(neighbour = neighbour.uri, %address, said, "a neighbour gives no keys and certificates; it is asked for the rest");
                }
                answered => return answered,
            }
        }
        door.get("/snapshots").await
    }

    /// Reads a snapshot, on a thread where that may take long.
    async fn read(&self, bytes: Bytes) -> Result<Snapshot, Refusal> {
        let (types, secrets) = (self.types.clone(), self.secrets);
        let read = tokio::task::spawn_blocking(move || snapshot::decode(&bytes, &types, plan::now(), secrets));
        Ok(read.await.map_err(|_| Refusal::Lost)??)
    }
}

impl Door<'_> {
    async fn get(&self, path: &'static str) -> Result<Incoming, Refusal> {
        let Self { neighbour, address } = self;
        let endpoint = Endpoint::Tcp {
            host: address.ip().to_string(),
            port: address.port(),
        };
        let name = host(&neighbour.endpoint);
        let connected = connect(&endpoint, name, &neighbour.credentials, HTTP1, Duration::ZERO).await?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(connected.io)).await?;
        // It ends with the answer.
        drop(spawn(async move { drop(connection.await) }));
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
        Err(Refusal::Status {
            status: status.as_u16(),
            said: String::from_utf8_lossy(&said).trim().escape_debug().to_string(),
        })
    }
}

/// Takes the next snapshot, which stands behind its length.
fn next(buffer: &mut BytesMut) -> Result<Option<Bytes>, Refusal> {
    let Some(length) = buffer.first_chunk::<LENGTH_BYTES>() else {
        return Ok(None);
    };
    let length = u64::from_le_bytes(*length);
    if length > BYTES_MAX {
        return Err(Refusal::Endless);
    }
    let length = usize::try_from(length).map_err(|_| Refusal::Endless)?;
    if buffer.len() - LENGTH_BYTES < length {
        return Ok(None);
    }
    buffer.advance(LENGTH_BYTES);
    Ok(Some(buffer.split_to(length).freeze()))
}
