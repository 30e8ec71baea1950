// SPDX-License-Identifier: Apache-2.0
//! `/events`: what changes, as server-sent events: the state of the relay and of its servers, pressure, and counts once a second.
//!
//! Owns the form, and how many may read. Nothing is looked at while nobody reads; all readers share one look.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get};
use futures_util::stream;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::MissedTickBehavior;

use super::{Clusters, Shown, counts, holds};
use crate::answers::{CountSums, HoldGlimpse, PressureGlimpse, ServerGlimpse};
use crate::clock;
use crate::telemetry::MetricFamily;
use crate::xds::authority_label;

/// Those who read.
#[derive(Clone, Debug)]
struct EventReaders {
    room: Arc<Semaphore>,
    last: Arc<Mutex<Last>>,
}

/// The last look, and when it was.
type Last = Option<(Instant, Arc<Glimpse>)>;

/// How many may read at the same time.
const READERS_MAX: usize = 16;
/// How often readers are told something.
const PACE: Duration = Duration::from_secs(1);
/// How long a look is good enough for the others.
const FRESH: Duration = Duration::from_millis(500);
/// How long a reader may read nothing. Then it is told no more, and another may have its place.
const PATIENCE: Duration = Duration::from_secs(30);

/// What is seen at one moment.
#[derive(Debug, Default, PartialEq)]
struct Glimpse {
    status: &'static str,
    /// By authority and server.
    servers: BTreeMap<(String, String), ServerGlimpse>,
    /// By id.
    holds: BTreeMap<String, HoldGlimpse>,
    pressure: PressureGlimpse,
    counts: CountSums,
}

impl Default for EventReaders {
    fn default() -> Self {
        Self {
            room: Arc::new(Semaphore::new(READERS_MAX)),
            last: Arc::default(),
        }
    }
}

/// Returns the route.
pub(super) fn route() -> MethodRouter<Shown> {
    let readers = EventReaders::default();
    get(async move |State(shown): State<Shown>| answer(shown, readers))
}

#[expect(
    clippy::disallowed_methods,
    reason = "a reader that reads nothing polls nothing, and must end all the same"
)]
fn answer(shown: Shown, readers: EventReaders) -> Response {
    let Ok(place) = readers.room.clone().try_acquire_owned() else {
        let why = format!("{READERS_MAX} others read the events already\n");
        return (StatusCode::TOO_MANY_REQUESTS, why).into_response();
    };
    let (told, tells) = mpsc::channel(1);
    drop(tokio::spawn(tell(move || readers.look(&shown), told, place)));
    let body = Body::from_stream(stream::unfold(tells, |mut tells| async {
        let text: String = tells.recv().await?;
        Some((Ok::<_, Infallible>(text), tells))
    }));
    let headers = [
        (header::CONTENT_TYPE, "text/event-stream"),
        (header::CACHE_CONTROL, "no-cache"),
    ];
    (headers, body).into_response()
}

/// Tells a reader what changes, until it is gone or reads nothing. Meanwhile it has its place.
async fn tell(look: impl Fn() -> Arc<Glimpse>, told: mpsc::Sender<String>, _place: OwnedSemaphorePermit) {
    let mut before = Arc::new(Glimpse::default());
    let mut ticks = tokio::time::interval(PACE);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            () = told.closed() => break,
        }
        let now = look();
        let text = now.since(&before);
        before = now;
        let sent = clock::timeout(PATIENCE, told.send(text)).await;
        if sent.is_none_or(|sent| sent.is_err()) {
            break;
        }
    }
}

impl EventReaders {
    /// Returns how everything looks now, or did a moment ago.
    fn look(&self, shown: &Shown) -> Arc<Glimpse> {
        let now = clock::now();
        let mut last = self.last.lock();
        if let Some((at, look)) = &*last
            && now.saturating_duration_since(*at) < FRESH
        {
            return look.clone();
        }
        let clusters = shown.overview.look();
        let status = super::process::state(shown.health.status());
        let mut look = Glimpse::new(status, &clusters, &shown.metrics.families());
        look.holds = holds::brief(shown);
        let look = Arc::new(look);
        *last = Some((now, look.clone()));
        look
    }
}

impl Glimpse {
    fn new(status: &'static str, clusters: &Clusters, metrics: &[MetricFamily]) -> Self {
        let authorities = clusters.authorities.iter();
        let servers = authorities.flat_map(|(authority, servers)| {
            let authority = authority_label(authority);
            servers.iter().map(move |server| {
                let glimpse = ServerGlimpse {
                    authority: authority.to_owned(),
                    server: server.server.clone(),
                    state: server.state.clone(),
                    why: server.why.clone(),
                };
                ((authority.to_owned(), server.server.clone()), glimpse)
            })
        });
        Self {
            status,
            servers: servers.collect(),
            holds: BTreeMap::new(),
            pressure: counts::pressure(metrics),
            counts: counts::sums(metrics),
        }
    }

    /// Returns the events that tell what is different, and the counts in any case.
    fn since(&self, before: &Self) -> String {
        let mut text = String::new();
        let mut event = |name: &str, data: &Value| {
            let _ = write!(text, "event: {name}\ndata: {data}\n\n");
        };
        if self.status != before.status {
            event("status", &json!({ "status": self.status }));
        }
        for ((authority, server), now) in news(&self.servers, &before.servers) {
            let gone = || json!({ "authority": authority, "server": server, "state": "gone" });
            event("server", &now.map_or_else(gone, |now| json!(now)));
        }
        for (id, hold) in news(&self.holds, &before.holds) {
            event("hold", &json!({ "id": id, "hold": hold }));
        }
        if self.pressure != before.pressure {
            event("pressure", &json!(self.pressure));
        }
        event("counts", &json!(self.counts));
        text
    }
}

/// Returns what is different now, and then what is gone.
fn news<'a, K: Ord, V: PartialEq>(
    now: &'a BTreeMap<K, V>,
    before: &'a BTreeMap<K, V>,
) -> impl Iterator<Item = (&'a K, Option<&'a V>)> {
    let changed = now.iter().filter(|(key, value)| before.get(*key) != Some(*value));
    let gone = before.keys().filter(|key| !now.contains_key(*key));
    (changed.map(|(key, value)| (key, Some(value)))).chain(gone.map(|key| (key, None)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first events tell everything; later ones what has changed, and always the counts.
    #[test]
    fn only_changes_are_told() {
        let server = |state: &str| {
            let glimpse = ServerGlimpse {
                authority: "#old".to_owned(),
                server: "cp:1".to_owned(),
                state: state.to_owned(),
                why: String::new(),
            };
            (("#old".to_owned(), "cp:1".to_owned()), glimpse)
        };
        let look = |state: &str| Glimpse {
            status: "LIVE",
            servers: [server(state)].into(),
            pressure: PressureGlimpse {
                active: vec!["x".to_owned()],
                ..PressureGlimpse::default()
            },
            counts: CountSums {
                streams: 1,
                ..CountSums::default()
            },
            ..Glimpse::default()
        };
        let names = |text: &str| {
            let lines = text.lines().filter_map(|line| line.strip_prefix("event: "));
            lines.map(str::to_owned).collect::<Vec<_>>()
        };
        let first = look("answering").since(&Glimpse::default());
        assert_eq!(names(&first), ["status", "server", "pressure", "counts"]);
        assert!(first.ends_with("}\n\n") && first.contains("\"streams\":1,"), "{first}");
        assert_eq!(names(&look("answering").since(&look("answering"))), ["counts"]);
        assert_eq!(
            names(&look("unreachable").since(&look("answering"))),
            ["server", "counts"]
        );
        let hold = |count| HoldGlimpse {
            server: String::new(),
            class: "-".to_owned(),
            type_url: "cds".to_owned(),
            reason: "mass",
            trouble: false,
            count,
            since: None,
            until: None,
            some: Vec::new(),
            words: Vec::new(),
            nouns: ["", ""],
            order: String::new(),
        };
        let held = |count| Glimpse {
            holds: [("1-cds-mass".to_owned(), hold(count))].into(),
            ..look("answering")
        };
        assert_eq!(names(&held(1).since(&look("answering"))), ["hold", "counts"]);
        assert_eq!(names(&held(1).since(&held(1))), ["counts"]);
        assert_eq!(names(&held(2).since(&held(1))), ["hold", "counts"]);
        assert!(look("answering").since(&held(2)).contains("\"hold\":null"));
        let gone = Glimpse {
            servers: BTreeMap::new(),
            ..look("x")
        };
        assert!(gone.since(&look("x")).contains("\"state\":\"gone\""));
    }

    /// Two events wait for a reader: one on its way, and one that is told it next. Then its place is free again.
    #[tokio::test(start_paused = true)]
    async fn who_reads_nothing_loses_its_place() {
        let readers = EventReaders::default();
        let place = readers.room.clone().try_acquire_owned().unwrap();
        let (told, mut tells) = mpsc::channel(1);
        let telling = tell(Arc::default, told, place);
        tokio::pin!(telling);
        let early = tokio::time::timeout(PATIENCE, &mut telling).await;
        assert!(early.is_err() && readers.room.available_permits() == READERS_MAX - 1);
        assert!(tokio::time::timeout(PACE * 2, telling).await.is_ok());
        assert_eq!(readers.room.available_permits(), READERS_MAX);
        assert!(tells.recv().await.is_some() && tells.recv().await.is_none());
    }
}
