// SPDX-License-Identifier: Apache-2.0
//! What the operator sees while control planes are away: `/clusters`, metrics and the log.

use tonic::Code;

use crate::messages::wants;
use crate::plane::Plane;
use crate::stage::{
    self, ANYWHERE, CDS, Client, Delta, EDS, Relay, clusters, directory, eventually, has, replace, until,
};
use crate::{first_run, fresh};

const VHDS: &str = "type.googleapis.com/envoy.config.route.v3.VirtualHost";

/// I-05: faults in files are shown with their place, and counted, before any client asks for anything; they go away once the file
/// is right.
#[test]
fn files_are_shown_before_anybody_reads_them() {
    let dir = directory("shown");
    let write = |file: &str, text: &str| replace(&dir.join(file), text);
    let good = format!("- '@type': {CDS}\n  name: a\n");
    write("1.yaml", &good);
    write("2.yaml", &format!("- '@type': {CDS}\n  nme: b\n"));
    write("3.yaml", "- [\n");
    let relay = Relay::asks("shown", dir.display(), "");
    let until = |what: &str| {
        let begun = stage::now();
        loop {
            let text = relay.admin("/clusters");
            if text.contains(what) {
                return text;
            }
            assert!(begun.elapsed() < crate::plane::PATIENCE, "{what}: {text}");
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    };
    let text = until("::state::unreachable\n");
    let words = "[0]: envoy.config.cluster.v3.Cluster has no field `nme`; did you mean `name`? (and 1 more)\n";
    has(&text, &format!("/2.yaml:2:3: {words}"));
    relay.line("2.yaml:2:3");
    relay.line("3.yaml:");
    let metrics = relay.admin("/metrics");
    let counted = metrics
        .lines()
        .any(|line| line.starts_with("distributary_file_errors_total{") && line.ends_with(" 2"));
    assert!(counted, "{metrics}");
    write("2.yaml", "[]");
    write("3.yaml", "[]");
    let text = until("::state::answering\n");
    assert!(!text.contains("last_error"), "{text}");
    has(&text, "::last_success::");
}

/// C-21, M-03: with a SotW upstream, a client that waits for a virtual host is answered at once, also if it asks as Envoy does:
/// by name, beside the wildcard. The log says so once, and `/clusters` shows it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn virtual_hosts_need_delta() {
    let plane = Plane::start().await;
    let sotw = format!(
        "upstream: {{xds_servers: [{{server_uri: '{}', transport: sotw}}]}}\n",
        plane.address
    );
    let relay = Relay::run("hosts", &format!("{sotw}{ANYWHERE}"));
    let client = Client::connect(relay.address).await;
    for name in ["main/a", "main/b"] {
        let mut hosts: Delta = client.open(&wants(VHDS, &[])).await;
        hosts.says(&wants(VHDS, &[name]));
        assert!(hosts.next().await.versions.contains_key(name));
    }
    let line = relay.line("is not asked for this type");
    assert!(
        line.contains("envoy.config.route.v3.VirtualHost") && line.contains("does not speak delta"),
        "{line}"
    );
    let text = relay.admin("/clusters");
    let shown = format!("#old::{}::unserved::vhds::only delta has this type", plane.address);
    assert!(text.contains(&shown), "{text}");
}

/// G-02: a control plane that refuses the stream of one class stays available to the others; `/clusters` counts the refused
/// streams.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_class_that_is_refused() {
    for code in [Code::PermissionDenied, Code::InvalidArgument, Code::FailedPrecondition] {
        let mut plane = Plane::start().await;
        let classes = "node: {id: relay}\nclasses: [{key: [cluster]}]\n";
        let relay = Relay::asks(&format!("refused-{}", code as i32), plane.address, classes);
        let client = Client::connect(relay.address).await;
        let of = |cluster: &str| {
            let mut first = fresh();
            first.node.as_mut().unwrap().cluster = cluster.to_owned();
            first
        };
        let mut good: Delta = client.open(&of("good")).await;
        let mut served = plane.call().await;
        served.delta().await;
        served.send(&clusters("n", &[("a", "1")], &[]));
        assert_eq!(good.next().await.versions.len(), 1);
        let _bad: Delta = client.open(&of("bad")).await;
        let shown = eventually("the refusal", || {
            if let Some(call) = plane.has_call() {
                call.finish(code, "not you");
            }
            let text = relay.admin("/clusters");
            let words = ["::refused::1\n", "not you"];
            words.iter().all(|words| text.contains(words)).then_some(text)
        })
        .await;
        assert!(shown.contains("::state::answering\n"), "{shown}");
        assert!(shown.contains("; 1 of 2 streams refused"), "{shown}");
    }
}

fn first(relay: &Relay, key: &str) -> serde_json::Value {
    relay
        .json("/clusters?format=json")
        .pointer(&format!("/authorities/0/servers/0/{key}"))
        .unwrap()
        .clone()
}

/// G-15: `/clusters` and the metrics show what is wrong, since when, which sessions need it and what is served meanwhile. The log
/// has one line when a server is lost, and one when it is back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_outage_is_explained() {
    let dir = directory("explained");
    let mut address = None;
    first_run(&mut address, &dir).await;
    let address = address.unwrap();
    let relay = Relay::start(address, &dir);
    // The relay has tried it before any client needs it.
    relay.line("control plane not reached");
    assert_eq!(first(&relay, "state"), "unreachable");
    let client = Client::connect(relay.address).await;
    let mut reader: Delta = client.open(&fresh()).await;
    assert_eq!(reader.next().await.versions.len(), 2);
    let _lacking: Delta = client.open(&wants(EDS, &["never sent"])).await;
    let text = eventually("the words", || {
        let text = relay.admin("/clusters");
        let words = [
            "state::unreachable",
            "sessions::2\n",
            "1 session needs 1 resource that it never sent: eds never sent",
        ];
        words.iter().all(|words| text.contains(words)).then_some(text)
    })
    .await;
    for line in [
        format!("#old::{address}::priority::0\n"),
        format!("#old::{address}::state::unreachable\n"),
        format!("#old::{address}::cds::resources::2\n"),
        format!("#old::{address}::cds::stale::true\n"),
        format!("#old::{address}::why::{address} unreachable since "),
        "; resources from a snapshot: cds\n".to_owned(),
    ] {
        has(&text, &line);
    }
    assert!(first(&relay, "last_error").as_str().unwrap().contains("cannot connect"));
    assert_eq!(first(&relay, "lacking/count"), 1);
    let metrics = relay.admin("/metrics");
    for line in [
        "grpc_xds_client_resources{grpc_target=\"#relay\",grpc_xds_authority=\"#old\",grpc_xds_cache_state=\"acked\",grpc_xds_resource_type=\"envoy.config.cluster.v3.Cluster\"} 2\n".to_owned(),
        "grpc_xds_client_resources{grpc_target=\"#relay\",grpc_xds_authority=\"#old\",grpc_xds_cache_state=\"requested\",grpc_xds_resource_type=\"envoy.config.endpoint.v3.ClusterLoadAssignment\"} 1\n".to_owned(),
        format!("grpc_xds_client_server_failure_total{{grpc_target=\"#relay\",grpc_xds_server=\"{address}\"}} 1\n"),
    ] {
        has(&metrics, &line);
    }
    relay.line("server lost");

    let mut plane = Plane::again(address).await;
    let mut call = plane.call().await;
    assert_eq!(call.delta().await.type_url, CDS);
    call.send(&clusters("n2", &[("a", "1"), ("b", "1")], &[]));
    until("an answer", || first(&relay, "state") == "answering").await;
    assert_eq!(first(&relay, "last_error"), serde_json::Value::Null);
    relay.line("server back");
    let valid = format!(
        "grpc_xds_client_resource_updates_valid_total{{grpc_target=\"#relay\",grpc_xds_server=\"{address}\",grpc_xds_resource_type=\"envoy.config.cluster.v3.Cluster\"}} 2\n"
    );
    assert!(relay.admin("/metrics").contains(&valid));
}
