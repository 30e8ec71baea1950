// SPDX-License-Identifier: Apache-2.0
//! Responses with very many resources, on a runtime with one thread: others have their turns while these are read and published.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

use distributary::cache::View;
use distributary::clock::now;
use distributary::upstream::FindOtherViews;
use distributary::xds::{Cut, Twins, TypeUrl};
use h2::Reason;
use tokio::sync::Notify;

use crate::plane::{PATIENCE, Plane, soon};
use crate::{CDS, Relay, delta, sotw};

/// There are as many places for long work as threads, so only one of these tests can have it.
static ALONE: Mutex<()> = Mutex::new(());
const VERY_MANY: usize = 3000;

/// Plays a story when nothing of another one runs any more.
fn alone(story: impl Future<Output = ()>) {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    runtime.worker_threads(1).enable_all().build().unwrap().block_on(story);
}

fn names() -> Vec<String> {
    (0..VERY_MANY).map(|nth| format!("n{nth}")).collect()
}

fn puts(version: &str) -> Vec<String> {
    names().iter().map(|name| format!("{name}={version}")).collect()
}

fn texts(all: &[String]) -> Vec<&str> {
    all.iter().map(|text| &**text).collect()
}

fn present(cut: &Cut) -> usize {
    let slot = cut.slot(&TypeUrl::new(CDS));
    slot.and_then(|slot| slot.wildcard.as_ref())
        .map_or(0, |state| state.present())
}

async fn until(view: &View, count: usize) {
    soon("a change of very many", async {
        while present(&view.cut()) != count {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

/// Whether another task can have a turn now.
#[expect(clippy::disallowed_methods, reason = "a task beside the writer")]
fn others_have_turns() -> bool {
    let (done, waits) = sync_channel(1);
    tokio::spawn(async move { done.send(()) });
    waits.recv_timeout(PATIENCE / 4).is_ok()
}

/// Others have their turns while very many resources are read, published, held back and removed, in both dialects; and whoever looks at the
/// view meanwhile sees the whole response or nothing of it.
#[test]
fn nobody_waits_for_very_many() {
    for path in [crate::dialects::DELTA, crate::dialects::SOTW] {
        alone(others_have_turns_meanwhile(path));
    }
}

async fn others_have_turns_meanwhile(path: &str) {
    let (looks, armed) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicBool::new(false)));
    let look = |what: &'static str| {
        let (looks, armed) = (looks.clone(), armed.clone());
        move |present: usize| {
            if armed.load(Ordering::SeqCst) {
                let turns = others_have_turns();
                looks.lock().unwrap().push((what, turns, present));
            }
        }
    };
    let (reads, publishes) = (look("reads"), look("publishes"));
    let twins = Twins::new(move || {
        reads(0);
        Vec::new()
    });
    let find: FindOtherViews = Arc::new(move |view, _| {
        publishes(present(&view.cut()));
        None
    });
    let mut plane = Plane::start().await;
    let relay = Relay::with(plane.address, &[(CDS, "*")], |plan| {
        plan.looks = Some((twins, find));
        if path == crate::dialects::SOTW {
            plan.server.transport = distributary::config::Transport::Sotw;
        }
    });
    let mut call = plane.call().await;
    assert_eq!(call.path, path);
    armed.store(true, Ordering::SeqCst);
    let puts = puts("1");
    if path == crate::dialects::DELTA {
        call.delta().await;
        call.send(&delta(CDS, "n1", &texts(&puts), &[]));
    } else {
        call.sotw().await;
        call.send(&sotw(CDS, "1", "n1", &texts(&puts)));
    }
    until(&relay.view, VERY_MANY).await;
    let names = names();
    if path == crate::dialects::DELTA {
        call.send(&delta(CDS, "n2", &[], &texts(names.get(1..).unwrap())));
    } else {
        call.send(&sotw(CDS, "2", "n2", &["n0=1"]));
    }
    until(&relay.view, 1).await;
    armed.store(false, Ordering::SeqCst);
    let looks = looks.lock().unwrap();
    for what in ["reads", "publishes"] {
        assert!(looks.iter().filter(|look| look.0 == what).count() >= 2, "{looks:?}");
    }
    assert!(looks.iter().all(|(_, turns, _)| *turns), "{looks:?}");
    assert!(
        looks.iter().all(|look| [0, 1, VERY_MANY].contains(&look.2)),
        "{looks:?}"
    );
}

/// Stops the writer whenever it reads, until the test lets it go on.
struct Stop {
    reads: Arc<Notify>,
    go_on: SyncSender<()>,
}

impl Stop {
    fn new() -> (Self, (Twins, FindOtherViews)) {
        let (go_on, waits): (_, Receiver<()>) = sync_channel(16);
        let (reads, waits) = (Arc::new(Notify::new()), Mutex::new(waits));
        let noted = reads.clone();
        let twins = Twins::new(move || {
            noted.notify_one();
            waits.lock().unwrap().recv_timeout(PATIENCE).unwrap();
            Vec::new()
        });
        (Self { reads, go_on }, (twins, Arc::new(|_, _| None)))
    }

    async fn reading(&self) {
        soon("a response that is read", self.reads.notified()).await;
    }
}

/// What may happen in the middle of a response: the stream ends, a client comes, a snapshot is taken, the wish for it ends, and the relay
/// stops.
#[test]
fn in_the_middle() {
    alone(a_stream_a_client_and_the_relay_end());
}

async fn a_stream_a_client_and_the_relay_end() {
    let (stop, looks) = Stop::new();
    let mut plane = Plane::start().await;
    let relay = Relay::with(plane.address, &[(CDS, "*")], |plan| plan.looks = Some(looks));
    let mut call = plane.call().await;
    call.delta().await;
    let first = puts("1");
    call.send(&delta(CDS, "n1", &texts(&first), &[]));
    stop.reading().await;
    call.reset(Reason::CANCEL);
    let newcomer = relay.view.enter();
    assert_eq!(present(&relay.view.cut()), 0);
    assert_eq!(present(&relay.view.knowledge(now()).whole()), 0);
    stop.go_on.send(()).unwrap();
    until(&relay.view, VERY_MANY).await;
    drop(newcomer);
    // The response was whole when its stream ended.
    let mut call = plane.call().await;
    call.delta().await;
    let second = puts("2");
    call.send(&delta(CDS, "n1", &texts(&second), &[]));
    stop.reading().await;
    relay.want(CDS, "*", false);
    assert_eq!(present(&relay.view.cut()), VERY_MANY);
    stop.go_on.send(()).unwrap();
    relay.forgets(CDS).await;
    call.gone().await;
    relay.want(CDS, "*", true);
    let mut call = plane.call().await;
    call.delta().await;
    call.send(&delta(CDS, "n1", &texts(&first), &[]));
    stop.reading().await;
    relay.task.abort();
    stop.go_on.send(()).unwrap();
    soon("the end of the writer", async {
        while !relay.task.is_finished() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert_eq!(present(&relay.view.cut()), 0);
}
