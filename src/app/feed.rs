// SPDX-License-Identifier: Apache-2.0
//! What fills the views.
//!
//! Owns that each view has one writer, and when the relay counts as ready. Knows nothing of what is written.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;

use super::fleet::{Fed, Fleet, Member};
use super::introduced::Introduced;
use super::overview::Overview;
use super::reload::Live;
use super::warm::Warm;
use super::{plan, spawn};
use crate::cache::{View, other_views};
use crate::downstream::Shared;
use crate::telemetry::{Health, TurnTimes};
use crate::upstream::{FileWriter, FindOtherViews, Talk, Writer};

/// Gives every new view its writer.
pub(super) async fn feed(
    live: &Arc<Live>,
    fleet: &Arc<Fleet>,
    shared: &Shared,
    warm: Option<&Arc<Warm>>,
    overview: &Overview,
) {
    let (scopes, metrics) = (&shared.scopes, &shared.metrics);
    let ready = ready(fleet.clone(), live.clone(), warm.cloned(), shared.health.clone());
    drop(spawn(&metrics.turns.other, ready));
    // The node changes with a restart only.
    let node = live.config().node.clone();
    let all = scopes.clone();
    let find: FindOtherViews = Arc::new(move |view, watching| other_views(&all, view, watching));
    let mut introduced = Introduced::new(scopes, metrics, &node);
    loop {
        for view in scopes.take_created() {
            let Some(member) = fleet.get(view.server()) else {
                continue;
            };
            let mut node = || Arc::new(introduced.node(&view, &member));
            let files = match plan::files(view.class()) {
                Ok(files) => files,
                Err(error) => {
                    // No client can use such a view.
                    tracing::error!(%error, "a view has no usable credentials and gets no resources");
                    continue;
                }
            };
            match &member.fed {
                Fed::Grpc(target, settings) => {
                    let writer = Writer::new(view.clone(), &node(), target, files, settings)
                        .seeing(find.clone())
                        .sharing(&scopes.twins(&view));
                    fill(writer, view, warm.cloned(), overview, &metrics.turns.view);
                }
                Fed::Rest(server, settings) => {
                    let writer = Writer::polling(view.clone(), &node(), server, files, settings).seeing(find.clone());
                    fill(writer, view, warm.cloned(), overview, &metrics.turns.view);
                }
                Fed::Files(files) => {
                    let config = live.config();
                    let writer = FileWriter::new(view, files, plan::quiet_alone(&config));
                    let writer = writer.seeing(find.clone());
                    drop(spawn(&metrics.turns.view, writer.run()));
                }
            }
        }
        scopes.changed().await;
    }
}

/// K-36: the relay is ready once a server was reached for the names without an owner, and one of each source, or a snapshot of one is
/// there.
async fn ready(fleet: Arc<Fleet>, live: Arc<Live>, warm: Option<Arc<Warm>>, health: Arc<Health>) {
    let saved = match warm {
        Some(warm) => warm.look().await,
        None => BTreeSet::new(),
    };
    loop {
        let changed = fleet.changed();
        let by_class = live.config().classes.have_credentials();
        let lists = fleet.needed();
        let is_saved = |list: &[Arc<Member>]| {
            let mut names = list.iter().filter_map(|member| member.in_snapshots());
            names.any(|name| saved.contains(name))
        };
        health.await_all(lists.iter().map(|(name, _)| name.clone()).collect());
        let lists = lists.into_iter().map(|(name, list)| {
            if is_saved(&list) {
                health.is_there(&name);
            }
            let health = &health;
            reach(list, by_class, move || health.is_there(&name))
        });
        tokio::select! {
            _ = futures_util::future::join_all(lists) => {}
            () = changed => {}
        }
    }
}

/// Tries the servers in their order: the next one once those before it have failed, until one is reached. Those that failed are
/// tried until they are reached, too, so that operators see whether they are there. Files count as reached once they were read
/// without errors.
async fn reach(servers: Vec<Arc<Member>>, by_class: bool, reached: impl FnOnce()) {
    let mut targets = Vec::new();
    let mut tried: FuturesUnordered<BoxFuture<'static, ()>> = FuturesUnordered::new();
    for server in servers {
        match server.fed.clone() {
            Fed::Grpc(target, settings) => targets.push((target, settings)),
            Fed::Rest(server, settings) => {
                tried.push(Box::pin(async move { server.reached(&settings, by_class).await }));
            }
            Fed::Files(source) => tried.push(Box::pin(async move { source.reached().await })),
        }
    }
    let mut targets = targets.into_iter();
    let mut failed: BoxFuture<'static, ()> = Box::pin(std::future::ready(()));
    loop {
        tokio::select! {
            biased;
            Some(()) = tried.next() => break,
            () = &mut failed => failed = match targets.next() {
                Some((target, settings)) => {
                    let next = target.clone();
                    tried.push(Box::pin(async move { target.reached(&settings, by_class).await }));
                    Box::pin(async move { next.record.not_reached().await })
                }
                None => Box::pin(std::future::pending()),
            },
        }
    }
    reached();
    while tried.next().await.is_some() {}
    std::future::pending().await
}

/// Fills a view: first from its snapshot, if there is one, then from the server.
fn fill<L: Talk + 'static>(
    writer: Writer<L>,
    view: Arc<View>,
    warm: Option<Arc<Warm>>,
    overview: &Overview,
    turns: &TurnTimes,
) {
    overview.add(&view, writer.statuses());
    drop(spawn(turns, async move {
        if let Some(warm) = warm {
            warm.load(&view).await;
        }
        writer.run().await;
    }));
}
