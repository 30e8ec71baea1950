// SPDX-License-Identifier: Apache-2.0
//! The figures of a run while it lasts, for Prometheus: answers `/metrics` at an address. Owns the names of the metrics. Measures
//! nothing: it is told the figures of each second.

use std::cell::RefCell;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Context as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use crate::measure::record::{Live, Percentiles, float};

/// An address that answers with the last figures.
pub(crate) struct Exposition {
    listener: TcpListener,
    last: RefCell<Option<Live>>,
}

/// A request has a short head, and comes at once; one visitor is answered at a time.
const HEAD_BYTES_MAX: usize = 8 * 1024;
const PATIENCE: Duration = Duration::from_secs(2);

impl Exposition {
    pub(crate) async fn bind(address: SocketAddr) -> anyhow::Result<Self> {
        let listener = TcpListener::bind(address).await;
        Ok(Self {
            listener: listener.with_context(|| format!("--prometheus {address}: cannot listen there"))?,
            last: RefCell::default(),
        })
    }

    /// Returns where it answers, for people.
    pub(crate) fn describe(&self) -> std::io::Result<String> {
        let address = self.listener.local_addr()?;
        Ok(format!("metrics of this run are at http://{address}/metrics"))
    }

    /// Takes the figures of a second.
    pub(crate) fn tell(&self, live: &Live) {
        *self.last.borrow_mut() = Some(live.clone());
    }

    /// Answers visitors, for as long as it is polled.
    pub(crate) async fn run(&self) {
        loop {
            match self.listener.accept().await {
                // Who does not ask in time, or leaves, is not answered.
                Ok((visitor, _)) => drop(timeout(PATIENCE, self.answer(visitor)).await),
                // There is no descriptor left, perhaps; the clients of the run come first.
                Err(_) => tokio::time::sleep(PATIENCE).await,
            }
        }
    }

    async fn answer(&self, mut visitor: TcpStream) -> std::io::Result<()> {
        let mut head = Vec::new();
        while !head.windows(4).any(|end| end == b"\r\n\r\n") && head.len() < HEAD_BYTES_MAX {
            if visitor.read_buf(&mut head).await? == 0 {
                return Ok(());
            }
        }
        let asks = |path: &str| {
            head.starts_with(format!("GET {path} ").as_bytes()) || head.starts_with(format!("GET {path}?").as_bytes())
        };
        let (status, body) = match asks("/metrics") {
            true => ("200 OK", self.last.borrow().as_ref().map(text).unwrap_or_default()),
            false => ("404 Not Found", "the figures of this run are at /metrics\n".to_owned()),
        };
        let head = format!(
            "HTTP/1.1 {status}\r\ncontent-type: text/plain; version=0.0.4; charset=utf-8\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
            body.len()
        );
        visitor.write_all(head.as_bytes()).await?;
        visitor.write_all(body.as_bytes()).await
    }
}

/// A metric: its name, its kind, what it is, and its samples, each with its label.
type Metric = (&'static str, &'static str, &'static str, Vec<(String, f64)>);

/// Returns the figures in Prometheus' text format; those that are not known are left out.
fn text(live: &Live) -> String {
    let mut out = String::new();
    for (name, kind, about, samples) in metrics(live).into_iter().filter(|(.., samples)| !samples.is_empty()) {
        let _ = writeln!(out, "# HELP {PREFIX}{name} {about}\n# TYPE {PREFIX}{name} {kind}");
        for (label, value) in samples {
            let _ = writeln!(out, "{PREFIX}{name}{label} {value}");
        }
    }
    out
}

fn metrics(live: &Live) -> [Metric; 10] {
    let second = &live.second;
    let one = |value: Option<f64>| value.map(|value| (String::new(), value)).into_iter().collect();
    let count = |count: Option<u64>| one(count.map(float));
    let cores = |percent: Option<f64>| one(percent.map(|percent| percent / 100.0));
    let counted = live.counters.iter().map(|(what, count)| (label("what", what), *count));
    let phase = live.phase.iter().map(|phase| (label("phase", phase), 1.0));
    let gauge = |name, about, samples| (name, "gauge", about, samples);
    [
        ("counted_total", "counter", "What the report counts.", counted.collect()),
        gauge("phase_info", "The phase that is played.", phase.collect()),
        gauge("clients", "Clients that have everything.", count(Some(second.clients))),
        gauge(
            "clients_with_stream",
            "Clients that have a stream.",
            count(second.with_stream),
        ),
        gauge(
            "deliveries_owed",
            "Deliveries of changes that are to come.",
            count(second.owed),
        ),
        gauge(
            "propagation_seconds",
            "How long the changes of the last second took.",
            quantiles(second.propagation_micros),
        ),
        gauge(
            "join_seconds",
            "How long the clients of the phase took from connecting until they had everything: the start-up of a pod.",
            quantiles(live.joins_micros),
        ),
        gauge(
            "server_cpu_cores",
            "Processors that the server took.",
            cores(second.server_cpu_percent),
        ),
        gauge(
            "server_resident_bytes",
            "Memory of the server.",
            count(second.resident_bytes),
        ),
        gauge(
            "tool_cpu_cores",
            "Processors that the tool took.",
            cores(Some(second.tool_cpu_percent)),
        ),
    ]
}

/// Returns times as samples.
fn quantiles(micros: Option<Percentiles>) -> Vec<(String, f64)> {
    let times = micros.map(|it| [("0.5", it.p50), ("0.9", it.p90), ("0.99", it.p99), ("1", it.max)]);
    let times = times.into_iter().flatten();
    times
        .map(|(part, micros)| (label("quantile", part), float(micros) / 1e6))
        .collect()
}

fn label(name: &str, value: &str) -> String {
    let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    format!("{{{name}=\"{value}\"}}")
}

/// What all names begin with.
const PREFIX: &str = "distributary_load_";

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::measure::record::Second;

    /// A phase may be called anything; what is not known is left out.
    #[tokio::test]
    async fn prometheus_is_told_what_is_known() {
        let exposition = Exposition::bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let address = exposition.listener.local_addr().unwrap();
        let asked = async |path: &str| {
            let mut visitor = TcpStream::connect(address).await.unwrap();
            let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n");
            visitor.write_all(request.as_bytes()).await.unwrap();
            let mut answer = String::new();
            visitor.read_to_string(&mut answer).await.unwrap();
            answer
        };
        let story = async {
            let silent = TcpStream::connect(address).await.unwrap();
            let none = asked("/metrics").await;
            assert!(
                none.starts_with("HTTP/1.1 200 OK\r\n") && none.ends_with("\r\n\r\n"),
                "{none}"
            );
            drop(silent);
            exposition.tell(&Live {
                phase: Some("a \"b\"".to_owned()),
                second: Second {
                    propagation_micros: Some(Percentiles {
                        p50: 1500,
                        p90: 2000,
                        p99: 2500,
                        max: 3000,
                    }),
                    tool_cpu_percent: 50.0,
                    clients: 7,
                    ..Second::default()
                },
                joins_micros: Some(Percentiles {
                    p50: 40_000,
                    p90: 50_000,
                    p99: 60_000,
                    max: 70_000,
                }),
                counters: [("streams ended: OK".to_owned(), 3.0)].into(),
            });
            let told = asked("/metrics?x").await;
            for line in [
                "# TYPE distributary_load_counted_total counter",
                "distributary_load_counted_total{what=\"streams ended: OK\"} 3",
                "distributary_load_clients 7",
                "distributary_load_propagation_seconds{quantile=\"0.99\"} 0.0025",
                "distributary_load_join_seconds{quantile=\"0.5\"} 0.04",
                "distributary_load_tool_cpu_cores 0.5",
                "distributary_load_phase_info{phase=\"a \\\"b\\\"\"} 1",
            ] {
                assert!(told.lines().any(|it| it == line), "{line} is not in\n{told}");
            }
            assert!(
                !told.contains("server_") && !told.contains("owed") && !told.contains("NaN"),
                "{told}"
            );
            assert!(asked("/").await.starts_with("HTTP/1.1 404 "));
        };
        tokio::select! { () = exposition.run() => {}, () = story => {} }
        assert!(Exposition::bind(address).await.is_err());
    }

    /// The dashboard shows every metric, and no other.
    #[test]
    fn the_dashboard_shows_what_is_told() {
        let dashboard = include_str!("../../../config/observability/load.json");
        let words = dashboard.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
        let shown: BTreeSet<_> = words.filter_map(|word| word.strip_prefix(PREFIX)).collect();
        let live = Live {
            phase: None,
            second: Second::default(),
            joins_micros: None,
            counters: [].into(),
        };
        let told: BTreeSet<_> = metrics(&live).into_iter().map(|(name, ..)| name).collect();
        assert_eq!(shown, told);
        let json: serde_json::Value = serde_json::from_str(dashboard).unwrap();
        let panels = json["panels"].as_array().unwrap();
        let ids: BTreeSet<_> = panels.iter().map(|panel| panel["id"].as_u64().unwrap()).collect();
        assert_eq!(ids.len(), panels.len());
    }
}
