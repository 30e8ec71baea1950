// SPDX-License-Identifier: Apache-2.0
//! The cache, from outside: which sessions it wakes, what it asks upstream for, and what is left afterwards.

mod class_rules;
mod collections;
mod leases;
mod library;
mod other_views;
mod parts;
mod pressure;
mod questions;
mod random;
mod rejected;
mod restored;
mod scopes;
mod sets;
mod shares;
mod threads;
mod turns;
mod view;

use std::sync::Arc;
use std::time::{Duration, Instant};

use cache::{Seat, View, ViewSettings};
use classes::{Class, Classes};
use identity::Identity;
use proto::envoy::config::core::v3::Node;
use proto::envoy::service::discovery::v3::{DeltaDiscoveryRequest, DiscoveryRequest};
use protocol::{ClientRequest, Opening, Server, StreamLimits, StreamSettings, StreamTimers};
use xds::{
    Changes, Dialect, Dirty, Known, Name, Phase, Reason, Resource, ResourceParts, Target, TypeUrl, Types, Update, Want,
};

const LINGER: Duration = Duration::from_secs(30);

#[expect(clippy::disallowed_methods, reason = "some instant to begin from; tests add to it")]
fn start() -> Instant {
    Instant::now()
}

/// A type with aliases.
fn addresses() -> TypeUrl {
    TypeUrl::new("istio.workload.Address")
}

fn eds() -> TypeUrl {
    TypeUrl::new("type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment")
}

fn cds() -> TypeUrl {
    TypeUrl::new("type.googleapis.com/envoy.config.cluster.v3.Cluster")
}

fn settings() -> ViewSettings {
    ViewSettings {
        linger: LINGER,
        names_per_view: 1000,
        pinned_bytes_per_view: 0,
        history_bytes: 16 << 20,
    }
}

/// The limits of client streams.
fn stream(limits: StreamLimits) -> StreamSettings {
    StreamSettings {
        types: Types::default(),
        limits,
        timers: StreamTimers::default(),
        classes: Classes::default(),
        anonymous: true,
        relay_id: "relay".to_owned(),
        access: Arc::default(),
    }
}

/// A client stream with these settings.
fn opened(settings: impl Into<Arc<StreamSettings>>, dialect: Dialect, nonce_prefix: u32) -> Server {
    let opening = Opening {
        dialect,
        service: None,
        nonce_prefix,
        identity: Identity::default(),
        polls: false,
    };
    Server::new(settings.into(), opening)
}

/// A request of a client with this node for these names; `nonce` is that of the last response.
fn request(dialect: Dialect, node: Option<Node>, type_url: &TypeUrl, names: Vec<String>, nonce: &str) -> ClientRequest {
    let (type_url, response_nonce) = (type_url.url().to_owned(), nonce.to_owned());
    match dialect {
        Dialect::Sotw => ClientRequest::from(DiscoveryRequest {
            node,
            type_url,
            resource_names: names,
            response_nonce,
            ..Default::default()
        }),
        Dialect::Delta => ClientRequest::from(DeltaDiscoveryRequest {
            node,
            type_url,
            resource_names_subscribe: names,
            response_nonce,
            ..Default::default()
        }),
    }
}

fn view() -> Arc<View> {
    View::new(Class::default(), settings())
}

/// A view of at most so many names.
fn view_of(names_per_view: usize) -> Arc<View> {
    let settings = ViewSettings {
        names_per_view,
        ..settings()
    };
    View::new(Class::default(), settings)
}

fn resource(type_url: &TypeUrl, name: &str, aliases: &[&str], body: &[u8]) -> Arc<Resource> {
    let parts = ResourceParts {
        type_url,
        name: Name::from(name),
        aliases: aliases.iter().copied().map(Name::from).collect(),
        passed_on: &[],
        body,
        endpoints: None,
        received: start(),
    };
    Arc::new(Resource::new(parts, 0))
}

fn put(type_url: &TypeUrl, name: &str, body: &str) -> Update {
    Update::Put(resource(type_url, name, &[], body.as_bytes()), None)
}

fn absent(name: &str) -> Update {
    Update::Absent(Name::from(name), Reason::Said)
}

/// Changes of what was asked for by name.
fn named(type_url: &TypeUrl, updates: Vec<Update>) -> Changes {
    Changes {
        type_url: type_url.clone(),
        wildcard: false,
        updates,
        complete: None,
        answered: None,
        phase: Phase::Steady,
    }
}

/// Changes of what a wildcard covers.
fn covered(type_url: &TypeUrl, updates: Vec<Update>) -> Changes {
    Changes {
        wildcard: true,
        ..named(type_url, updates)
    }
}

/// The same, after which the wildcard is complete.
fn whole(type_url: &TypeUrl, updates: Vec<Update>) -> Changes {
    Changes {
        complete: Some(true),
        ..covered(type_url, updates)
    }
}

fn want(type_url: &TypeUrl, name: &str, wanted: bool) -> Want {
    let read = Name::read(name, type_url);
    let written = read.written(name);
    let target = match name {
        Name::WILDCARD => Target::Wildcard,
        _ => Target::Name(read),
    };
    Want {
        type_url: type_url.clone(),
        target,
        wanted,
        written,
    }
}

/// A seat that wants these names.
fn seat(view: &Arc<View>, type_url: &TypeUrl, names: &[&str]) -> Seat {
    let seat = view.enter();
    for name in names {
        assert_eq!(seat.want(&want(type_url, name, true)), Ok(()));
    }
    seat
}

/// The names that the seat's bell rang for.
fn heard(seat: &Seat) -> Vec<String> {
    let mut heard = Vec::new();
    for (type_url, dirty) in seat.bell().take() {
        match dirty {
            Dirty::All => heard.push(format!("{type_url:?} all")),
            Dirty::Names(names) if names.is_empty() => heard.push(format!("{type_url:?} wildcard")),
            Dirty::Names(names) => heard.extend(names.iter().map(|name| format!("{type_url:?} {name}"))),
        }
    }
    heard
}

/// Wants as text: `+cds *`.
fn asked(wants: &[Want]) -> Vec<String> {
    let text = |want: &Want| {
        let sign = if want.wanted { '+' } else { '-' };
        let target = match &want.target {
            Target::Wildcard => Name::WILDCARD,
            Target::Name(name) => name.as_str(),
        };
        format!("{sign}{:?} {target}", want.type_url)
    };
    wants.iter().map(text).collect()
}
