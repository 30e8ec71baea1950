// SPDX-License-Identifier: Apache-2.0
//! The control plane for clients that poll: an answer waits until there is something that the client does not have. Keeps no
//! state between two polls.

use std::time::Duration;

use anyhow::Context as _;
use bytes::Bytes;
use h2::RecvStream;
use h2::server::SendResponse;
use http::{Response, StatusCode};
use serde::Deserialize;
use serde_json::json;
use tokio::time::timeout;
use xxhash_rust::xxh3::xxh3_64;

use super::Listening;
use crate::origin::ledger::Ledger;
use crate::wire::kind::Kind;

/// The fields of a poll.
#[derive(Deserialize)]
struct Asked {
    #[serde(default)]
    version_info: String,
    #[serde(default)]
    resource_names: Vec<String>,
}

/// H-04: how long an answer is held; less than any client waits.
const HOLD: Duration = Duration::from_millis(800);

/// Returns the type of a path for polls.
pub(super) fn polled(path: &str) -> Option<Kind> {
    Kind::ALL.into_iter().find(|kind| kind.poll_path() == Some(path))
}

/// Answers one poll.
pub(super) async fn answer(
    listening: &Listening,
    kind: Kind,
    mut body: RecvStream,
    mut respond: SendResponse<Bytes>,
) -> anyhow::Result<()> {
    let mut text = Vec::new();
    while let Some(data) = body.data().await {
        let data = data?;
        body.flow_control().release_capacity(data.len())?;
        text.extend_from_slice(&data);
    }
    let asked: Asked = serde_json::from_slice(&text)?;
    let world = &listening.answers.world;
    let ledger = world.ledger(kind).context("the world has no such resources")?;
    let mut changes = world.bell.watch();
    let news = async {
        loop {
            changes.borrow_and_update();
            // H-05: the version alone says what the client has.
            let version = version(ledger, &asked.resource_names);
            if version != asked.version_info || changes.changed().await.is_err() {
                return version;
            }
        }
    };
    let Ok(version) = timeout(HOLD, news).await else {
        let head = Response::builder().status(StatusCode::NOT_MODIFIED).body(())?;
        respond.send_response(head, true)?;
        return Ok(());
    };
    let json = Bytes::from(resources(ledger, &asked.resource_names, &version).to_string());
    listening.counts.answered(json.len());
    let head = Response::builder()
        .header("content-type", "application/json")
        .body(())?;
    respond.send_response(head, false)?.send_data(json, true)?;
    Ok(())
}

/// Returns a version that differs for each state of these resources.
fn version(ledger: &Ledger, names: &[String]) -> String {
    format!("{}.{:x}", ledger.generation(), xxh3_64(names.join(",").as_bytes()))
}

fn resources(ledger: &Ledger, names: &[String], version: &str) -> serde_json::Value {
    let indexes: Vec<u32> = match names {
        // H-06: no names means all names.
        [] => (0..ledger.len()).collect(),
        names => names.iter().filter_map(|name| ledger.index(name.as_bytes())).collect(),
    };
    let current = |index: &u32| ledger.inspect(*index, |history| ledger.json(*index, history.last()?))?;
    let resources: Vec<_> = indexes.iter().filter_map(current).collect();
    json!({ "version_info": version, "type_url": ledger.kind().type_url(), "resources": resources })
}
