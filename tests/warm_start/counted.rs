// SPDX-License-Identifier: Apache-2.0
//! The metrics of a relay that runs: their form, and what they say before anything has happened.

use crate::fresh;
use crate::lint::lint;
use crate::messages;
use crate::plane::{Plane, soon};
use crate::stage::{CDS, Client, Delta, Relay, asking, clusters, has, until};

const CLUSTERS: &str = "envoy.config.cluster.v3.Cluster";

fn config(server: impl std::fmt::Display) -> String {
    asking(server, "types: [{type_url: type.googleapis.com/acme.Known}]\n")
}

/// The body of the metrics in Prometheus's own form.
fn metrics(relay: &Relay) -> String {
    let answer = relay.admin("/metrics");
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.contains("content-type: text/plain; version=0.0.4"), "{head}");
    body.to_owned()
}

/// The value of a series.
fn value(text: &str, series: &str) -> Option<f64> {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    line.map(|value| value.parse().unwrap())
}

/// Series with labels that are known beforehand begin at 0, so that their first increase is one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn series_begin_at_zero() {
    let relay = Relay::run("zero", &config("127.0.0.1:1"));
    let text = metrics(&relay);
    assert_eq!(lint(&text), [] as [String; 0], "{text}");
    let server = "grpc_target=\"#relay\",grpc_xds_server=\"127.0.0.1:1\"";
    for series in [
        "distributary_nacks_total{type=\"cds\"}".to_owned(),
        "distributary_nacks_total{type=\"acme.Known\"}".to_owned(),
        "distributary_nacks_total{type=\"other\"}".to_owned(),
        "distributary_convergence_seconds_count{type=\"eds\"}".to_owned(),
        "distributary_streams{dialect=\"sotw\"}".to_owned(),
        "distributary_refused_total{limit=\"views\"}".to_owned(),
        "distributary_name_faults_total{fault=\"malformed\"}".to_owned(),
        "distributary_tls_handshakes_total{result=\"bad_certificate\"}".to_owned(),
        "distributary_proxy_headers_total{result=\"stranger\"}".to_owned(),
        "distributary_tokens_total{result=\"expired\"}".to_owned(),
        "distributary_snapshots_total{result=\"not_written\"}".to_owned(),
        "distributary_reloads_total{result=\"bad\"}".to_owned(),
        "distributary_upstream_streams{server=\"127.0.0.1:1\",dialect=\"delta\",reason=\"preferred\"}".to_owned(),
        "distributary_upstream_last_success_timestamp_seconds{server=\"127.0.0.1:1\"}".to_owned(),
        "distributary_stale_serving{server=\"127.0.0.1:1\"}".to_owned(),
        format!("grpc_xds_client_connected{{{server}}}"),
        format!("grpc_xds_client_server_failure_total{{{server}}}"),
        format!("grpc_xds_client_resource_updates_invalid_total{{{server},grpc_xds_resource_type=\"{CLUSTERS}\"}}"),
        "grpc_server_tls_handshakes_total{grpc_tls_handshake_result=\"CERTIFICATE_EXPIRED\",grpc_tls_handshake_resumed=\"FULL_HANDSHAKE\"}"
            .to_owned(),
    ] {
        assert_eq!(value(&text, &series), Some(0.0), "{series} in\n{text}");
    }
    let build = text
        .lines()
        .find(|line| line.starts_with("distributary_build_info{"))
        .unwrap();
    let (version, commit) = (distributary::telemetry::VERSION, distributary::telemetry::COMMIT);
    let expected = format!("distributary_build_info{{version=\"{version}\",commit=\"{commit}\"}} 1");
    assert_eq!(build, expected);
    let hexadecimal = commit.chars().all(|c| c.is_ascii_hexdigit());
    assert!(commit.is_empty() || commit.len() == 40 && hexadecimal, "{commit}");
}

/// The kernel's numbers are those of the relay's process.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_process_is_measured() {
    let relay = Relay::run("measured", &config("127.0.0.1:1"));
    let text = metrics(&relay);
    let value = |series| value(&text, series).unwrap();
    let since = std::time::UNIX_EPOCH.elapsed().unwrap().as_secs_f64();
    let age = since - value("process_start_time_seconds");
    assert!((-2.0..600.0).contains(&age), "{age}");
    let status = std::fs::read_to_string(format!("/proc/{}/status", relay.process())).unwrap();
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    let resident = resident.trim().trim_end_matches(" kB").parse::<f64>().unwrap() * 1024.0;
    let shown = value("process_resident_memory_bytes");
    assert!((0.5..2.0).contains(&(shown / resident)), "{shown}, not {resident}");
    assert!(value("process_virtual_memory_bytes") >= shown);
    let open = value("process_open_fds");
    assert!(open > 5.0 && open < value("process_max_fds"), "{open}");
    // The kernel counts in hundredths of a second, and a start may take less than one.
    until("a hundredth of a second", || {
        self::value(&metrics(&relay), "process_cpu_seconds_total") > Some(0.0)
    })
    .await;
}

/// A relay that serves: both text forms, types under gRPC's names, types that clients invent, and what is shown while the control plane
/// is away.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_relay_that_serves() {
    let mut plane = Plane::start().await;
    let address = plane.address;
    let relay = Relay::run("counted", &config(address));
    let client = Client::connect(relay.address).await;
    let mut stream: Delta = client.open(&fresh()).await;
    let mut call = plane.call().await;
    call.delta().await;
    // The answer, which is no change, and a change.
    for (nonce, version, acks) in [("n1", "1", 1.0), ("n2", "2", 2.0)] {
        call.send(&clusters(nonce, &[("a", version), ("b", "1")], &[]));
        let nonce = soon("a response", stream.message()).await.nonce;
        stream.says(&messages::answer(CDS, &nonce, None));
        let acked = "distributary_acks_total{type=\"cds\"}";
        until("an acknowledgement", || value(&metrics(&relay), acked) == Some(acks)).await;
    }
    let mut odd = fresh();
    odd.type_url = "type.googleapis.com/evil.\"\\\n{x=\"y\"} 1".to_owned();
    let _odd: Delta = client.open(&odd).await;
    let others = "distributary_requests_total{type=\"other\"}";
    until("a request", || value(&metrics(&relay), others) == Some(1.0)).await;

    let text = metrics(&relay);
    assert_eq!(lint(&text), [] as [String; 0], "{text}");
    assert!(!text.contains("evil"), "{text}");
    let converged = "distributary_convergence_seconds_count{type=\"cds\"}";
    assert_eq!(value(&text, converged), Some(1.0));
    let resources = format!(
        "grpc_xds_client_resources{{grpc_target=\"#relay\",grpc_xds_authority=\"#old\",grpc_xds_cache_state=\"acked\",grpc_xds_resource_type=\"{CLUSTERS}\"}}"
    );
    assert_eq!(value(&text, &resources), Some(2.0), "{text}");
    let success = format!("distributary_upstream_last_success_timestamp_seconds{{server=\"{address}\"}}");
    let age = std::time::UNIX_EPOCH.elapsed().unwrap().as_secs_f64() - value(&text, &success).unwrap();
    assert!((-1.0..600.0).contains(&age), "{age}");
    // A series that has begun between both is in one of them alone.
    until("the same series", || {
        is_openmetrics(&relay.openmetrics(), &metrics(&relay))
    })
    .await;

    let stale = format!("distributary_stale_serving{{server=\"{address}\"}}");
    assert_eq!(value(&text, &stale), Some(0.0));
    drop(call);
    drop(plane);
    until("staleness", || value(&metrics(&relay), &stale) == Some(1.0)).await;
    let clusters_page = relay.admin("/clusters");
    assert!(clusters_page.contains("::cds::stale::true"), "{clusters_page}");
    assert!(!clusters_page.contains("from a snapshot"), "{clusters_page}");
    let mut plane = Plane::again(address).await;
    let mut call = soon("a call", plane.call()).await;
    call.delta().await;
    call.send(&clusters("n3", &[("a", "2"), ("b", "1")], &[]));
    until("an answer", || value(&metrics(&relay), &stale) == Some(0.0)).await;
}

/// Whether this has the same series, in the form of OpenMetrics.
fn is_openmetrics(answer: &str, prometheus: &str) -> bool {
    let (head, text) = answer.split_once("\r\n\r\n").unwrap();
    has(head, "content-type: application/openmetrics-text; version=1.0.0");
    assert!(text.ends_with("\n# EOF\n"), "{text}");
    assert!(text.contains("# TYPE distributary_acks counter\n"), "{text}");
    let series = |text: &str| {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let series = lines.map(|line| line.rsplit_once(' ').unwrap().0.to_owned());
        series.collect::<std::collections::BTreeSet<_>>()
    };
    series(text) == series(prometheus)
}
