// SPDX-License-Identifier: Apache-2.0
//! The admin address, and beside it the address of the probes: over HTTP/1.1. Knows nothing of the protocol: it shows what it is given.
//!
//! Owns the paths: one table, by which they are served and allowed, and from which `/help` and refusals say what to write, and beside it what
//! those of a few lines answer. They are answered on a thread of its own, so that they are even while the data side is busy.

mod adoption;
mod certificates;
mod changes;
mod clients;
mod clusters;
mod config_dump;
mod counts;
mod entrance;
mod escaped;
mod events;
mod forms;
mod guard;
mod history;
mod holds;
mod hosts;
mod http;
mod logging;
mod nacks;
mod orders;
mod page;
mod probes;
mod process;
mod reception;
mod reflection;
mod reload;
mod resources;
mod service;
mod shown;
mod snapshots;
mod stats;
mod status;
mod tenure;
mod turns;
mod views;
mod visits;
mod written;

pub(crate) use crate::answers::{LackingNames, OfType, ServerRow, SpokenDialect};
pub(crate) use clusters::why;
pub use clusters::{Clusters, NameCounts, Overview, State};
pub use guard::Guard;
pub use history::History;
pub use logging::Logging;
pub use process::Process;
pub use reload::{ReloadAnswer, ReloadOrder, SentText};
pub use service::{Admin, AdminError};
pub use shown::{DrainOrder, Shown};
pub use snapshots::{Give, Pace, Snapshots};

use std::fmt::Write as _;

use axum::Router;
use axum::extract::{self, DefaultBodyLimit};
use axum::handler::Handler as _;
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::middleware;
use axum::response::{IntoResponse as _, Response};
use axum::routing::{MethodRouter, get, post};
use tokio::sync::Semaphore;

use crate::clock::WallClock;
use crate::telemetry::{Exposition, RelayStatus};
use forms::{AnswerForm, Answered, Asked, Formatted, Refused};

/// Who may ask, the path with its other names, what the query may say, what answers, and what people are told of it; nothing: they do not
/// ask for it.
struct AdminPath(
    PathAccess,
    &'static str,
    &'static str,
    fn() -> MethodRouter<Shown>,
    &'static str,
);

/// Who may ask, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PathAccess {
    /// Those who have nothing to show, such as a kubelet, under any name of the host: it tells no more than a connection that is accepted.
    Probe,
    /// Who may read, under any name of the host, as scrapers have it.
    Scrape,
    /// Who may read.
    Read,
    /// Who may read, by POST.
    Question,
    /// The same, one question after the other.
    Stream,
    /// Who may change something, by POST, and not from a web page.
    Order,
    /// The same, with a whole configuration as the body.
    Config,
}

use PathAccess::{Config, Order, Probe, Question, Read, Scrape, Stream};

impl PathAccess {
    /// Whether it only looks, whatever the method.
    const fn is_question(self) -> bool {
        matches!(self, Question | Stream)
    }

    const fn is_order(self) -> bool {
        matches!(self, Order | Config)
    }
}

#[rustfmt::skip]
const PATHS: &[AdminPath] = &[
    AdminPath(Read, "/", "", || get(page::root),
        "this list; for browsers, a page that shows it all"),
    AdminPath(Read, "/page/{part}", "", || get(page::part), ""),
    AdminPath(Probe, "/ready /healthz/ready", "", || get(ready),
        "200 when clients can be served, 503 with the reason before, and while draining"),
    AdminPath(Probe, "/live /healthz", "", || get(async || "LIVE\n"),
        "200 while the program runs"),
    AdminPath(Read, "/clusters", "format=json", || get(clusters),
        "the state of every control plane, and why"),
    AdminPath(Read, "/clients", "format=json, node=ID, class=CLASS, software=NAME (with * for any text), type=TYPE, \
            state=rejecting, older, lagging, waiting or current, sort=requests or request_bytes, and limit=COUNT", || get(clients::list),
        "the client streams, those in trouble first"),
    AdminPath(Read, "/clients/{client}", "limit=COUNT", || get(clients::one),
        "one in full; ID is its number, or node=ID for all streams of a node"),
    AdminPath(Read, "/clients/{client}/ready", "", || get(clients::ready),
        "200 once it has accepted all that it asked for; 503 says what it waits for"),
    AdminPath(Read, "/resources", "type=TYPE, class=CLASS, name=NAME (with * for any text), state=STATE, sort=age or size, \
            and limit=COUNT", || get(resources::list),
        "what the relay has of its control planes"),
    AdminPath(Read, "/resources/{*name}", "type=TYPE, node=ID and class=CLASS (with * for any text)", || get(resources::one),
        "one in full, how many clients have it, or not, and how fast they accepted it"),
    AdminPath(Read, "/snapshots", "secrets=true", || get(snapshots::answer),
        "all of it for a relay that starts, in the form of snapshots, perhaps with keys and certificates"),
    AdminPath(Read, "/views", "limit=COUNT", || get(views::answer),
        "how much of it there is for each class of clients, with digests, to compare replicas"),
    AdminPath(Read, "/config_dump", "resource=FIELD, mask=FIELD,FIELD, name_regex=REGEX and include_eds", || get(config_dump::answer),
        "the configuration and all resources in Envoy's form"),
    AdminPath(Read, "/nacks", "type=TYPE, name=NAME and version=VERSION", || get(nacks::answer),
        "what clients have rejected, with their words, and since when"),
    AdminPath(Read, "/holds", "format=json", || get(holds::answer),
        "removals that are not passed on, and why"),
    AdminPath(Order, "/holds/extend", "target=ID or TYPE/NAME, reason=TEXT, and for=TIME such as 30m", || post(holds::extend),
        "holds them for longer"),
    AdminPath(Order, "/holds/release", "target=ID or TYPE/NAME, and reason=TEXT", || post(holds::release),
        "passes them on at once"),
    AdminPath(Question, "/v3/discovery:client_status", "", || post(status::json),
        "CSDS as JSON; over gRPC, envoy.service.status.v3.ClientStatusDiscoveryService, with reflection"),
    AdminPath(Stream, "/envoy.service.status.v3.ClientStatusDiscoveryService/StreamClientStatus", "", || post(status::grpc), ""),
    AdminPath(Question, "/envoy.service.status.v3.ClientStatusDiscoveryService/{method}", "", || post(status::grpc), ""),
    AdminPath(Stream, "/grpc.reflection.v1.ServerReflection/{method} /grpc.reflection.v1alpha.ServerReflection/{method}", "",
            || post(reflection::answer), ""),
    AdminPath(Read, "/changes", "limit=COUNT", || get(changes::answer),
        "what has changed last, and how many clients have accepted it"),
    AdminPath(Read, "/history", "", || get(history::answer),
        "the counts of the last hour, in memory only"),
    AdminPath(Read, "/events", "", events::route,
        "what changes, as server-sent events"),
    AdminPath(Read, "/certs", "", || get(certificates),
        "the certificates in use, with their days until they expire, as Envoy shows them"),
    AdminPath(Read, "/server_info", "", || get(process::server_info),
        "version, state, uptime, node and options, as Envoy shows them"),
    AdminPath(Read, "/memory", "", || get(process::memory),
        "the memory of the process, as Envoy shows it"),
    AdminPath(Read, "/listeners", "format=json", || get(process::listeners),
        "where clients connect"),
    AdminPath(Scrape, "/metrics /stats/prometheus", "", || get(metrics),
        "metrics for Prometheus"),
    AdminPath(Read, "/stats", "filter=REGEX, usedonly and format=text, json or prometheus", || get(stats::answer),
        "the same as lines `name: value`"),
    AdminPath(Order, "/logging", "level=LEVEL, PART=LEVEL or paths=PART:LEVEL,PART:LEVEL", || post(logging::answer),
        "what each part logs; the query changes it"),
    AdminPath(Order, "/drain_listeners", "graceful", || post(orders::drain),
        "disconnects clients one by one; gracefully after /ready has been 503 for a while; a signal ends the relay"),
    AdminPath(Order, "/healthcheck/fail", "", || post(orders::fail),
        "/ready is 503; clients are still served"),
    AdminPath(Order, "/healthcheck/ok", "", || post(orders::recover),
        "undoes /healthcheck/fail"),
    AdminPath(Order, "/reload", "", || post(reload::reload),
        "reads the configuration again"),
    // How long a text may be is known where it arrives.
    AdminPath(Config, "/validate", "name=NAME", || post(reload::validate.layer(DefaultBodyLimit::disable())),
        "with a configuration as the body: what it would change if it were the relay's; NAME: what problems begin with"),
    AdminPath(Read, "/help", "", || get(async || help()),
        "this list"),
];

async fn ready(extract::State(shown): extract::State<Shown>) -> (StatusCode, String) {
    match shown.health.status() {
        RelayStatus::Starting => {
            let missing = shown.health.missing();
            let mut words = vec![format!("STARTING: {}", shown.health.not_reached())];
            words.append(&mut shown.overview.look().reasons(missing.as_ref()));
            (StatusCode::SERVICE_UNAVAILABLE, words.join("; ") + "\n")
        }
        RelayStatus::Ready => (StatusCode::OK, "READY\n".to_owned()),
        RelayStatus::Draining => (StatusCode::SERVICE_UNAVAILABLE, "DRAINING\n".to_owned()),
    }
}

async fn clusters(extract::State(shown): extract::State<Shown>, Asked(asked): Asked<Formatted>) -> Answered {
    let clusters = shown.overview.look();
    let standings = shown.status.census().standings().await;
    Ok(match asked.format {
        AnswerForm::Text => clusters.text(&standings).into_response(),
        AnswerForm::Json => forms::line(&clusters.json(WallClock::read(), &standings)),
    })
}

async fn certificates(extract::State(shown): extract::State<Shown>) -> Response {
    forms::line(&certificates::json(&shown.certificates.all(), WallClock::read()))
}

/// Who reads the metrics is served one at a time, so that others who ask get their turn between two of them.
static READING: Semaphore = Semaphore::const_new(1);

/// Returns all metrics, as they are now, in a text form.
async fn metrics_text(shown: &Shown, form: Exposition) -> Result<String, Refused> {
    // It is never closed.
    let _turn = READING.acquire().await;
    shown.refresh().await;
    let why = |error| format!("cannot encode the metrics: {error}\n");
    let text = shown.metrics.encode_as(form);
    text.map_err(|error| Refused::new(StatusCode::INTERNAL_SERVER_ERROR, why(error)))
}

async fn metrics(extract::State(shown): extract::State<Shown>, headers: HeaderMap) -> Answered {
    let accepted = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok());
    let form = Exposition::accepted(accepted.unwrap_or_default());
    let text = metrics_text(&shown, form).await?;
    Ok(([(header::CONTENT_TYPE, form.content_type())], text).into_response())
}

fn of(path: &str) -> Option<&'static AdminPath> {
    PATHS
        .iter()
        .find(|AdminPath(_, names, ..)| names.split(' ').any(|name| fits(name, path)))
}

/// Returns who may ask a path; what does not exist is a secret like all that is read.
fn access_of(path: &str) -> PathAccess {
    of(path).map_or(Read, |AdminPath(access, ..)| *access)
}

/// Whether a path is this one, of which parts in braces may be anything.
fn fits(name: &str, path: &str) -> bool {
    let (mut wanted, mut given) = (name.split('/'), path.split('/'));
    loop {
        match (wanted.next(), given.next()) {
            (None, None) => return true,
            (Some(part), Some(_)) if part.starts_with("{*") => return true,
            (Some(part), Some(own)) if part == own || part.starts_with('{') && !own.is_empty() => {}
            _ => return false,
        }
    }
}

/// Returns the routes.
fn routes(guard: &Guard) -> Router<Shown> {
    let mut router = Router::new();
    for AdminPath(access, names, _, handler, _) in PATHS {
        let mut handler = handler().fallback(async |method: Method, uri: Uri| not_so(&method, uri.path()));
        if access.is_order() {
            handler = handler.route_layer(middleware::from_fn_with_state(guard.clone(), orders::believed));
        }
        for name in names.split(' ') {
            router = router.route(name, handler.clone());
        }
    }
    router
}

/// Says which method a path has. To an order by another method Envoy answers with these words.
fn not_so(method: &Method, path: &str) -> (StatusCode, String) {
    let access = access_of(path);
    if access.is_order() {
        return (
            StatusCode::BAD_REQUEST,
            format!("Method {method} not allowed, POST required.\n"),
        );
    }
    let right = if access.is_question() { "POST" } else { "GET" };
    (
        StatusCode::METHOD_NOT_ALLOWED,
        format!("{path} does not allow {method}; use {right}\n"),
    )
}

/// Returns what to write to ask a path.
fn usage(path: &str) -> String {
    let (query, access) = of(path).map_or(("", Read), |AdminPath(access, _, query, ..)| (*query, *access));
    match query {
        "" => path.to_owned(),
        one if !one.contains([',', ' ']) => format!("{path} or {path}?{one}"),
        several if access.is_order() => format!("{path}?{several}"),
        several => format!("{path}, with any of {several}"),
    }
}

/// Returns all paths that people ask for, each in a line.
fn help() -> String {
    let mut text = String::new();
    for AdminPath(access, names, query, _, about) in PATHS.iter().filter(|AdminPath(.., about)| !about.is_empty()) {
        let names = names.replace("{client}", "ID").replace("{*name}", "NAME");
        let (name, also) = names.split_once(' ').unwrap_or((&names, ""));
        let asked = access.is_order() || access.is_question();
        let post = if asked { "POST: " } else { "" };
        let told = [("; ?", *query), ("; also ", also)]
            .into_iter()
            .filter(|(_, what)| !what.is_empty());
        let told = told.map(|(sign, what)| format!("{sign}{what}"));
        // Writing to memory cannot fail.
        let _ = writeln!(text, "{name:18} {post}{about}{}", told.collect::<String>());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_its_own_row() {
        for (path, access) in [
            ("/healthz/ready", Probe),
            ("/stats/prometheus", Scrape),
            ("/clients/1.1/ready", Read),
            ("/resources/a/b", Read),
            ("/grpc.reflection.v1.ServerReflection/x", Stream),
            ("/v3/discovery:client_status", Question),
            ("/holds/release", Order),
        ] {
            assert_eq!(of(path).map(|row| row.0), Some(access), "{path}");
        }
        for nothing in [
            "/ready/",
            "//ready",
            "/clients/",
            "/clients/1/2",
            "/resources",
            "/Reload",
            "",
        ] {
            assert_eq!(
                of(nothing).map(|row| row.1),
                (nothing == "/resources").then_some("/resources"),
                "{nothing}"
            );
        }
        assert_eq!(
            usage("/nacks"),
            "/nacks, with any of type=TYPE, name=NAME and version=VERSION"
        );
        assert_eq!(usage("/clusters"), "/clusters or /clusters?format=json");
        assert_eq!(usage("/reload"), "/reload");
    }

    #[test]
    fn help_is_the_table() {
        let help = help();
        for line in [
            "/ready             200 when clients can be served, 503 with the reason before, and while draining; also /healthz/ready\n",
            "/clients/ID        one in full; ID is its number, or node=ID for all streams of a node; ?limit=COUNT\n",
            "/reload            POST: reads the configuration again\n",
        ] {
            assert!(help.contains(line), "{help}");
        }
        assert!(!help.contains("/page/") && !help.contains('{'), "{help}");
    }
}
