// SPDX-License-Identifier: Apache-2.0
//! A client stream as text and as an answer.
//!
//! Owns the form. Collects nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use crate::answers::{self, ClientNode, ClientResources, ClientRow, NodeLocality, OfClient, OlderRow};
use crate::census::ClientState;
use crate::clock::WallClock;
use crate::inquiry::{ClientResource, ClientStream, ClientType};
use crate::xds::printable;

/// How many resources are named that a client waits for.
const NAMED_MAX: usize = 5;

/// Returns the line above the list.
pub(super) fn head() -> String {
    line_of([
        "STREAM", "STATE", "DIALECT", "SINCE", "ADDRESS", "CLASS", "TYPES", "NODE",
    ])
}

/// Returns one stream as a line of the list. Types have their servers behind them, if these are several.
pub(super) fn line(state: ClientState, client: &ClientStream, servers: &Servers, clock: WallClock) -> String {
    let read: BTreeSet<usize> = client.types.iter().filter_map(|one| one.server).collect();
    let types = client.types.iter().map(|one| {
        let server = one.server.filter(|_| read.len() > 1);
        let server = server.and_then(|at| servers.get(&at));
        let server = server.map_or_else(String::new, |server| format!("@{server}"));
        let older = if one.rejected.iter().any(|one| one.older.is_some()) {
            "(older)"
        } else {
            ""
        };
        format!("{}:{}{server}{older}", one.type_url.word(), one.status.word())
    });
    let types: Vec<String> = types.collect();
    line_of([
        &client.number.to_string(),
        state.word(),
        client.dialect.word(),
        &clock.short(client.since),
        &address(client),
        &client.node.class.to_string(),
        &if types.is_empty() {
            "-".to_owned()
        } else {
            types.join(",")
        },
        &client.node.id,
    ])
}

fn address(client: &ClientStream) -> String {
    client
        .peer
        .map_or_else(|| "unix".to_owned(), |address| address.to_string())
}

fn line_of(cells: [&str; 8]) -> String {
    let [number, state, dialect, since, address, class, types, node] = cells.map(printable);
    format!("{number:10} {state:9} {dialect:7} {since:20} {address:21} {class:16} {types:40} {node}\n")
}

/// The names of servers by number.
pub(super) type Servers = BTreeMap<usize, String>;

/// Returns one stream as it is answered, with at most so many resources of each type.
pub(super) fn answer(client: &ClientStream, clock: WallClock, servers: &Servers, limit: Option<usize>) -> ClientRow {
    let node = &client.node;
    let types = client.types.iter().map(|one| {
        let server = one.server.and_then(|at| servers.get(&at)).cloned();
        (one.type_url.full_name().to_owned(), of_type(one, server, clock, limit))
    });
    ClientRow {
        stream: client.number.to_string(),
        node: ClientNode {
            id: node.id.to_string(),
            cluster: node.cluster.to_string(),
            locality: NodeLocality {
                region: node.locality.region.to_string(),
                zone: node.locality.zone.to_string(),
                sub_zone: node.locality.sub_zone.to_string(),
            },
            user_agent_name: node.user_agent.name.to_string(),
            user_agent_version: node.user_agent.version.to_string(),
        },
        identity: client.identity.to_string(),
        class: node.class.to_string(),
        address: address(client),
        dialect: client.dialect.word().to_owned(),
        service: (client.service.as_ref())
            .map_or("aggregated", |service| service.full_name())
            .to_owned(),
        since: clock.time(client.since),
        requests: client.requests,
        request_bytes: client.request_bytes,
        state: String::new(),
        types: types.collect(),
    }
}

fn of_type(one: &ClientType, server: Option<String>, clock: WallClock, limit: Option<usize>) -> answers::ClientTypeRow {
    let time = |at: Option<Instant>| at.map(|at| clock.time(at));
    answers::ClientTypeRow {
        status: one.status.word().to_owned(),
        server,
        wildcard: one.wildcard,
        names: one.names,
        last_sent: time(one.sent),
        last_accepted: time(one.accepted),
        unanswered_since: time(one.unanswered_since),
        rejections: one.objections.iter().map(|why| why.words().to_owned()).collect(),
        older: sent_older(one).map(|one| standing(one, clock)).collect(),
        rejecting: rejecting(one).map(|one| standing(one, clock)).collect(),
        full: one.ready.map(|ready| full(one, ready, limit)),
    }
}

fn full(one: &ClientType, ready: bool, limit: Option<usize>) -> ClientResources {
    let mut standings: BTreeMap<String, usize> = BTreeMap::new();
    let mut resources: Vec<&ClientResource> = one.resources.iter().collect();
    for resource in &resources {
        *standings.entry(resource.standing.word().to_owned()).or_default() += 1;
    }
    if let Some(limit) = limit {
        // What the client lacks comes first.
        resources.sort_by_key(|resource| resource.standing.is_settled());
        resources.truncate(limit);
    }
    let resources = resources.into_iter().map(|resource| OfClient {
        name: resource.name.as_str().to_owned(),
        status: resource.standing.word().to_owned(),
        version: (resource.resource.as_ref()).map(|content| content.version().to_string()),
        rejection: resource.objection.as_ref().map(|why| why.words().to_owned()),
    });
    ClientResources {
        ready,
        standings,
        resources: resources.collect(),
    }
}

/// What the client was sent older content of, because it rejects the current one and had nothing.
fn sent_older(one: &ClientType) -> impl Iterator<Item = &ClientResource> {
    one.rejected.iter().filter(|one| one.older.is_some())
}

/// What the client keeps as it was, because it rejects the current content.
fn rejecting(one: &ClientType) -> impl Iterator<Item = &ClientResource> {
    one.rejected.iter().filter(|one| one.older.is_none())
}

/// Returns what the client rejects of a name, and what it has in its place.
fn standing(one: &ClientResource, clock: WallClock) -> OlderRow {
    let version = one.resource.as_ref().map(|content| content.version().to_string());
    let words = one.objection.as_ref().map_or("", |why| why.words());
    OlderRow {
        name: one.name.as_str().to_owned(),
        version: version.unwrap_or_default(),
        served: one.older.map(|older| older.to_string()).unwrap_or_default(),
        why: format!("it rejects the current content: {words}"),
        since: one.since.map(|since| clock.time(since)).unwrap_or_default(),
        words: words.to_owned(),
    }
}

/// Returns what a stream waits for, in a line for each type.
pub(super) fn waiting(client: &ClientStream) -> Vec<String> {
    let unready = client.types.iter().filter(|one| one.ready == Some(false));
    unready.map(|one| waiting_type(client, one)).collect()
}

fn waiting_type(client: &ClientStream, one: &ClientType) -> String {
    let all = one.resources.iter().filter(|resource| !resource.standing.is_settled());
    let count = all.clone().count();
    let named = all.take(NAMED_MAX);
    let named: Vec<String> = named
        .map(|resource| format!("{} is {}", resource.name.as_str(), resource.standing.word()))
        .collect();
    let what = match count {
        0 => "a response is not answered, or not everything is known yet".to_owned(),
        _ => printable(&named.join(", ")).into_owned(),
    };
    let more = match count.saturating_sub(NAMED_MAX) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("stream {}: {}: {what}{more}\n", client.number, one.type_url.word())
}
