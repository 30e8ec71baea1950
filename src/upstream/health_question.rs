// SPDX-License-Identifier: Apache-2.0
//! The question whether a server is there, for one that forbids pings.
//!
//! Owns when it is asked, and what counts as no answer. The question is a call of its own on the connection of the stream: whatever the
//! server makes of it, an error as well, it has to answer something, and no server counts calls as pings.

use std::future::poll_fn;
use std::sync::Arc;
use std::time::{Duration, Instant};

use http::uri::{PathAndQuery, Uri};
use http::{HeaderMap, Request};
use http_body_util::Full;
use tonic::body::Body;
use tonic::codegen::Service as _;

use super::ads_stream::head;
use super::channel::{ALIVE, Sender};
use super::clock::now;
use super::io_monitor::IoMonitor;
use crate::clock;
use crate::wire::message;

/// gRPC's own question, which every server may be asked. Those that do not know it say so.
const HEALTH: PathAndQuery = PathAndQuery::from_static("/grpc.health.v1.Health/Check");

/// Asks whenever the server has been silent for so long. Returns since when it is, once it has not answered.
pub(super) async fn unanswered(
    mut sender: Sender,
    origin: Uri,
    headers: HeaderMap,
    io_monitor: Arc<IoMonitor>,
    after: Duration,
) -> Instant {
    let (mut parts, patience) = (origin.into_parts(), ALIVE.min(after));
    parts.path_and_query = Some(HEALTH);
    let uri = Uri::from_parts(parts).unwrap_or_default();
    loop {
        let silence = io_monitor.silence(now());
        if silence < after {
            clock::sleep(after.saturating_sub(silence)).await;
            continue;
        }
        let asked = now();
        let answer = clock::timeout(patience, ask(&mut sender, head(uri.clone(), headers.clone()))).await;
        let silent = io_monitor.silence(now());
        // A server that allows one stream at a time was not asked.
        if answer.is_none() && io_monitor.wrote_since(asked) && silent >= after + patience {
            return asked.checked_sub(silence).unwrap_or(asked);
        }
        // What it sent counts, whatever that was. If it sent nothing, the connection ends.
        clock::sleep(patience).await;
    }
}

/// Returns once the question is answered, or cannot be asked.
async fn ask(sender: &mut Sender, mut request: Request<Body>) {
    if poll_fn(|cx| sender.poll_ready(cx)).await.is_err() {
        return;
    }
    // The empty message: how the server is as a whole.
    *request.body_mut() = Body::new(Full::new(message(&[])));
    drop(sender.call(request).await);
}
