// SPDX-License-Identifier: Apache-2.0
//! What each request passes on its way to the admin address.

use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::{Extension, Router};

use super::orders::RequestOrigin;
use super::{Shown, escaped, guard, hosts, orders};

pub(super) fn router(shown: Shown, access: RequestOrigin) -> Router {
    super::routes(&shown.guard)
        .fallback(async |uri: Uri| {
            (
                StatusCode::NOT_FOUND,
                format!("{} does not exist; GET /help lists all paths\n", uri.path()),
            )
        })
        .layer(middleware::from_fn_with_state(shown.guard.clone(), guard::pass))
        .layer(middleware::from_fn_with_state(
            (shown.guard.clone(), access),
            hosts::pass,
        ))
        .layer(middleware::from_fn(orders::unambiguous))
        .layer(Extension(access))
        .with_state(shown)
        .layer(middleware::map_response(escaped::answer))
        .layer(middleware::map_response(as_declared))
        .layer(middleware::from_fn(no_discovery))
        .layer(middleware::from_fn(trace))
}

/// Whether this is a gRPC call that the admin address does not serve, so that its body, which may never end, need not be read.
pub(super) fn is_lost(path: &str, headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE);
    kind.is_some_and(|kind| kind.as_bytes().starts_with(b"application/grpc")) && !super::access_of(path).is_question()
}

/// Tells a gRPC client that takes this for an xDS port what it is, at once and before anything else is looked at.
async fn no_discovery(request: Request, next: Next) -> Response {
    if !is_lost(request.uri().path(), request.headers()) {
        return next.run(request).await;
    }
    let said = "this is the admin address of a relay, which serves no such call; xDS clients connect to an address in `listeners`";
    tonic::Status::unimplemented(said).into_http::<axum::body::Body>()
}

/// Tells browsers to take an answer for what it says it is: names in a text may look like markup.
async fn as_declared(mut answer: Response) -> Response {
    let declared = HeaderValue::from_static("nosniff");
    answer.headers_mut().insert(header::X_CONTENT_TYPE_OPTIONS, declared);
    answer
}

pub(super) async fn trace(request: Request, next: Next) -> Response {
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let response = next.run(request).await;
    tracing::debug!(%method, path, status = response.status().as_u16(), "admin request");
    response
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::{SocketAddr, TcpStream};
    use std::sync::Arc;
    use std::time::Duration;

    use tokio::sync::mpsc;

    use crate::admin::{Admin, Clusters, DrainOrder, Guard, History, Logging, NameCounts, Overview, Process, Shown};
    use crate::cache::{Routes, Scopes, ViewSettings};
    use crate::census::{Census, ClientStatus};
    use crate::classes::Classes;
    use crate::config::{Address, Config, Flags};
    use crate::json::Schemas;
    use crate::proto::envoy::config::core::v3 as core;
    use crate::telemetry::{Health, Metrics, RelayStatus};

    fn ask(address: SocketAddr, request: &str) -> String {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let head = format!("host: {address}\r\ncontent-length: 0\r\nconnection: close");
        write!(stream, "{request} HTTP/1.1\r\n{head}\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    fn shown() -> (Shown, mpsc::Receiver<DrainOrder>) {
        let (order, orders) = mpsc::channel(1);
        let (reload, _) = mpsc::channel(1);
        let shown = Shown {
            metrics: Metrics::new([]),
            certificates: Arc::default(),
            overview: Overview::new(Clusters::default, NameCounts::default),
            status: status(),
            health: Arc::new(Health::new()),
            order,
            reload,
            guard: Guard::default(),
            process: Process::new(config(), None, Logging::new(String::new, |_| Ok(()))),
            history: History::default(),
            snapshots: Default::default(),
        };
        (shown, orders)
    }

    fn config() -> Config {
        let config = "upstream: {xds_servers: [{server_uri: cp:1}]}";
        Config::parse(config, "relay.yaml", &Flags::default()).unwrap()
    }

    fn status() -> ClientStatus {
        let settings = ViewSettings {
            linger: Duration::ZERO,
            names_per_view: 0,
            pinned_bytes_per_view: 0,
            history_bytes: 16 << 20,
        };
        let scopes = Scopes::new(Classes::default(), Routes::default(), settings, 0);
        ClientStatus::new(
            Census::new(Arc::new(scopes)),
            core::Node::default(),
            Schemas::standard(),
        )
    }

    fn start() -> (Admin, SocketAddr, Arc<Health>) {
        let (shown, _) = shown();
        let health = shown.health.clone();
        let (admin, address) = listen(shown);
        (admin, address, health)
    }

    fn listen(shown: Shown) -> (Admin, SocketAddr) {
        let admin = Admin::start(
            &Address::Socket(SocketAddr::from(([127, 0, 0, 1], 0))),
            None,
            None,
            shown,
        )
        .unwrap();
        let address = admin.socket().unwrap();
        (admin, address)
    }

    #[test]
    fn readiness_follows_health_and_liveness_does_not() {
        let (_admin, address, health) = start();
        for (status, code) in [
            (RelayStatus::Starting, 503),
            (RelayStatus::Ready, 200),
            (RelayStatus::Draining, 503),
        ] {
            health.advance(status);
            for path in ["/ready", "/healthz/ready"] {
                let answer = ask(address, &format!("GET {path}"));
                assert!(
                    answer.starts_with(&format!("HTTP/1.1 {code} ")),
                    "{path} at {status:?}: {answer}"
                );
            }
            for path in ["/live", "/healthz"] {
                assert!(
                    ask(address, &format!("GET {path}")).starts_with("HTTP/1.1 200 "),
                    "{path} at {status:?}"
                );
            }
        }
    }

    #[test]
    fn metrics_under_both_names() {
        let (_admin, address, _health) = start();
        for path in ["/metrics", "/stats/prometheus"] {
            let answer = ask(address, &format!("GET {path}"));
            assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
            assert!(
                answer.contains("\r\ncontent-type: text/plain; version=0.0.4; charset=utf-8\r\n"),
                "{answer}"
            );
            assert!(
                answer.contains("\ndistributary_streams{dialect=\"delta\"} 0\n"),
                "{answer}"
            );
            assert!(answer.contains("\ndistributary_build_info{version="), "{answer}");
        }
    }

    #[test]
    fn clusters_as_text_and_as_json() {
        let (_admin, address, _health) = start();
        let answer = ask(address, "GET /clusters");
        assert!(
            answer.starts_with("HTTP/1.1 200 ") && answer.contains("text/plain"),
            "{answer}"
        );
        let answer = ask(address, "GET /clusters?format=json");
        assert!(answer.contains("content-type: application/json\r\n"), "{answer}");
        assert!(answer.contains("{\"authorities\":[],\"clients\":{"), "{answer}");
        assert!(answer.ends_with("\"faults\":[]}"), "{answer}");
        let answer = ask(address, "GET /clusters?format=xml");
        assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
        assert!(
            answer.ends_with("write /clusters or /clusters?format=json\n"),
            "{answer}"
        );
    }

    #[test]
    fn wrong_paths_and_methods_say_what_is_right() {
        let (_admin, address, _health) = start();
        let answer = ask(address, "GET /nowhere");
        assert!(answer.starts_with("HTTP/1.1 404 "), "{answer}");
        assert!(
            answer.ends_with("/nowhere does not exist; GET /help lists all paths\n"),
            "{answer}"
        );
        let answer = ask(address, "POST /metrics");
        assert!(answer.starts_with("HTTP/1.1 405 "), "{answer}");
        assert!(answer.ends_with("/metrics does not allow POST; use GET\n"), "{answer}");
        let list = ask(address, "GET /");
        assert!(
            list.contains("/stats/prometheus") && list.contains("\r\nx-content-type-options: nosniff\r\n"),
            "{list}"
        );
        let page = ask(address, "GET / HTTP/1.1\r\naccept: text/html\r\nx-was:");
        assert!(
            page.contains("<!doctype html>") && page.contains("x-content-type-options: nosniff"),
            "{page}"
        );
    }

    #[test]
    fn an_operator_says_what_probes_are_told() {
        let (_admin, address, health) = start();
        health.advance(RelayStatus::Ready);
        for (path, code) in [("/healthcheck/fail", 503), ("/healthcheck/ok", 200)] {
            assert!(
                ask(address, &format!("POST {path}")).starts_with("HTTP/1.1 200 "),
                "{path}"
            );
            assert!(
                ask(address, "GET /ready").starts_with(&format!("HTTP/1.1 {code} ")),
                "after {path}"
            );
            let answer = ask(address, &format!("GET {path}"));
            assert!(
                answer.starts_with("HTTP/1.1 400 ") && answer.ends_with("Method GET not allowed, POST required.\n")
            );
        }
    }

    /// A drain order is passed on once, and orders from a web page in a browser are refused.
    #[test]
    fn an_operator_has_clients_leave() {
        let (shown, mut orders) = shown();
        let (_admin, address) = listen(shown);
        for path in ["/drain_listeners?graceful", "/drain_listeners"] {
            assert!(
                ask(address, &format!("POST {path}")).starts_with("HTTP/1.1 200 "),
                "{path}"
            );
        }
        assert!(orders.try_recv().unwrap().graceful && orders.try_recv().is_err());
        for wrong in ["/drain_listeners?skip_exit", "/drain_listeners?graceful&inboundonly"] {
            let answer = ask(address, &format!("POST {wrong}"));
            assert!(
                answer.starts_with("HTTP/1.1 400 ") && answer.contains("?graceful"),
                "{answer}"
            );
        }
        let foreign = "POST /drain_listeners HTTP/1.1\r\norigin: http://evil.example\r\nx-was:";
        assert!(ask(address, foreign).starts_with("HTTP/1.1 403 "));
        assert!(orders.try_recv().is_err());
    }

    #[tokio::test]
    async fn a_taken_address_says_which_key() {
        let (admin, _, _health) = start();
        let error = Admin::start(admin.address(), None, None, shown().0)
            .unwrap_err()
            .to_string();
        assert!(
            error.starts_with(&format!("admin.address: cannot listen on {}: ", admin.address())),
            "{error}"
        );
    }

    #[test]
    fn an_abandoned_socket_file_is_taken_over() {
        let path = std::env::temp_dir().join(format!("distributary-admin-{}.sock", std::process::id()));
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        let address = Address::Unix(path.clone());
        let admin = Admin::start(&address, None, None, shown().0).unwrap();
        assert!(
            Admin::start(&address, None, None, shown().0).is_err(),
            "a live one is left alone"
        );
        drop(admin);
        std::fs::remove_file(&path).unwrap();
    }
}
