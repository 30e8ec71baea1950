// SPDX-License-Identifier: Apache-2.0
//! Make before break: no route before its cluster, and no cluster goes while a route that was sent leads to it (D-01, D-03).
//!
//! Owns the order of a client's types on one stream. What the client holds it asks the client.

use std::collections::BTreeSet;

use peers::asked::Asked;
use xds::{Dialect, Reason};

use super::Came;
use crate::body::{Type, facts};
use crate::client::{Holding, Persona};
use crate::reading::Seen;
use crate::tally::{Broken, Rule, Tally};

pub(super) fn check(came: &Came<'_>, tally: &mut Tally) -> Result<(), Broken> {
    // Streams of their own have no order.
    if came.is_hostile() || came.client.persona == Persona::Streams {
        return Ok(());
    }
    let (Some(clusters), Some(routes)) = (came.want(Type::Cds), came.want(Type::Rds)) else {
        return Ok(());
    };
    match came.kind() {
        Type::Rds => check_routes(came, clusters, tally),
        Type::Cds => check_clusters(came, clusters, routes, tally),
        Type::Eds | Type::Leds | Type::Lds | Type::Sds | Type::Odd => Ok(()),
    }
}

/// Whether the client has asked for something that was not answered yet, or rejected it: then it may lack it, or hold it.
fn is_open(came: &Came<'_>, kind: Type, name: &str) -> bool {
    let memory = came.client.memory(came.stream, kind);
    memory.is_some_and(|memory| {
        let all = memory.asked.contains_key("*") && memory.want.covers(name);
        all || memory.asked.contains_key(name) || memory.refused.contains_key(name)
    })
}

/// D-01, L-27: a cluster that exists and is wanted comes before a route that leads to it.
fn check_routes(came: &Came<'_>, want: &Asked, tally: &mut Tally) -> Result<(), Broken> {
    let reading = &came.scene.reading;
    let unknown = |name: &String| reading.seen(Type::Cds, name, want) == Seen::Unknown;
    // Where a full state cannot be sent, routes do not wait for it.
    let waits = want.wildcard && !reading.is_certain(Type::Cds) || want.names.iter().any(unknown);
    if came.client.dialect == Dialect::Sotw && waits {
        return Ok(());
    }
    let held = came.client.held(Type::Rds);
    // What the client has given up meanwhile it ignores.
    let wants = |kind: Type, name: &str| {
        let memory = came.client.memory(came.stream, kind);
        memory.is_some_and(|memory| memory.want.asks(name) || memory.want.covers(name))
    };
    for entry in &came.answer.entries {
        let Some(facts) = &entry.facts else { continue };
        // What only confirms content that the client holds may come at any time (K-17).
        let same = held
            .get(&entry.name)
            .is_some_and(|held| held.revision == facts.revision);
        if same || !wants(Type::Rds, &entry.name) {
            continue;
        }
        for cluster in facts.refers.iter() {
            if !matches!(reading.seen(Type::Cds, cluster, want), Seen::Present(_)) || !wants(Type::Cds, cluster) {
                continue;
            }
            tally.hit(Rule::D01);
            let holds = came.client.held(Type::Cds).contains_key(cluster);
            if !holds && !is_open(came, Type::Cds, cluster) && !came.scene.expired {
                return broken!(
                    D01,
                    "route {} leads to cluster {cluster}, which was not sent",
                    entry.name
                );
            }
        }
    }
    Ok(())
}

/// D-03: a cluster goes after the routes that leave it.
fn check_clusters(came: &Came<'_>, clusters: &Asked, routes: &Asked, tally: &mut Tally) -> Result<(), Broken> {
    let reading = &came.scene.reading;
    let held = came.client.held(Type::Cds);
    let going: BTreeSet<&String> = came.answer.removed.iter().chain(came.omitted()).collect();
    // What it holds from an earlier stream, a SotW client does not say.
    let known = |held: &Holding| came.client.dialect == Dialect::Delta || held.stream == came.stream;
    for cluster in going.into_iter().filter(|name| held.get(*name).is_some_and(known)) {
        let unwanted = reading.seen(Type::Cds, cluster, clusters) == Seen::Unwanted;
        if unwanted || is_open(came, Type::Cds, cluster) || came.scene.expired {
            continue;
        }
        let leading = came.client.held(Type::Rds).iter();
        for (name, route) in leading.filter(|(_, route)| route.refers.contains(cluster)) {
            tally.hit(Rule::D03);
            if leaves(came, routes, name, route, cluster) && !is_open(came, Type::Rds, name) {
                return broken!(
                    D03,
                    "cluster {cluster} goes while route {name}@{} leads to it",
                    route.revision
                );
            }
        }
    }
    Ok(())
}

/// Whether the view has something newer of a route that the client was sent, which does not lead to a cluster.
fn leaves(came: &Came<'_>, want: &Asked, name: &str, held: &Holding, cluster: &str) -> bool {
    let reading = &came.scene.reading;
    match reading.seen(Type::Rds, name, want) {
        Seen::Present(revision) if revision != held.revision => {
            let body = reading.resource(Type::Rds, name).map(|route| route.body());
            let facts = body.and_then(|body| facts(&body).ok());
            facts.is_some_and(|facts| !facts.refers.iter().any(|other| other == cluster))
        }
        Seen::Absent(Reason::Said | Reason::Expired) => came.client.dialect == Dialect::Delta,
        Seen::Present(_) | Seen::Absent(Reason::TimedOut) | Seen::Unwanted | Seen::Uncovered | Seen::Unknown => false,
    }
}
