// SPDX-License-Identifier: Apache-2.0
//! What `distributary get` and `distributary wait` say to a control plane, and what they show of its words.

use std::process::Stdio;

use distributary::proto::envoy::config::core::v3::{ControlPlane, Locality};
use distributary::proto::envoy::service::discovery::v3::DeltaDiscoveryResponse;
use distributary::proto::google::protobuf::value::Kind;

use crate::get::{CDS, answer, ask, cluster, delta};
use crate::plane::Plane;
use crate::{fails, file, has, output, program, serve_from};

/// A response that says who answers.
fn named(nonce: &str, put: &[&str]) -> DeltaDiscoveryResponse {
    let put: Vec<_> = put.iter().map(|name| (*name, cluster(name))).collect();
    DeltaDiscoveryResponse {
        control_plane: Some(ControlPlane {
            identifier: "cp one\n".to_owned(),
        }),
        ..delta(CDS, nonce, &put, &[])
    }
}

/// The node and the headers are those of the flags.
#[tokio::test]
async fn as_a_client_of_its_own() {
    let mut plane = Plane::start().await;
    let metadata = file("request-metadata.yaml", "ISTIO_VERSION: '1.30'\nlabels: {app: web}\n");
    let metadata = format!("@{}", metadata.display());
    #[rustfmt::skip]
    let flags = ["Clusters", "a", "--node-metadata", &metadata, "--locality", "us-east1/b", "--header", "X-Team=edge",
        "--header", "x-team=two=parts", "--header", "authorization=Bearer abc", "--timeout", "20s", "-o", "name"];
    let asked = ask(&plane, &flags);
    let mut call = plane.call().await;
    let teams: Vec<_> = call.headers.get_all("x-team").iter().collect();
    assert_eq!(teams, ["edge", "two=parts"]);
    assert_eq!(call.headers["authorization"], "Bearer abc");
    assert_eq!(call.headers["content-type"], "application/grpc");
    let node = call.delta().await.node.unwrap();
    let place = Locality {
        region: "us-east1".to_owned(),
        zone: "b".to_owned(),
        sub_zone: String::new(),
    };
    assert_eq!(node.locality, Some(place));
    let version = node.metadata.unwrap().fields["ISTIO_VERSION"].kind.clone();
    assert_eq!(version, Some(Kind::StringValue("1.30".to_owned())));
    call.send(&named("1", &["a"]));
    assert_eq!(answer(asked).await, (Some(0), "a\n".to_owned(), String::new()));
}

/// The wide table has the control plane's version, its last nonce and its name, and nothing of it steers the terminal.
#[tokio::test]
async fn the_words_of_the_server() {
    let mut plane = Plane::start().await;
    let asked = ask(&plane, &["cds", "a", "b", "-o", "wide"]);
    let mut call = plane.call().await;
    call.delta().await;
    call.send(&named("v1", &["a"]));
    call.send(&named("v2", &["b"]));
    let (code, out, error) = answer(asked).await;
    assert_eq!((code, error.as_str()), (Some(0), ""));
    let rows: Vec<Vec<&str>> = out.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0], ["BYTES", "HASH", "VERSION", "NONCE", "CONTROL-PLANE", "NAME"]);
    assert_eq!(rows[1][2..], ["v1", "v2", "cp_one\\n", "a"], "{out}");
    assert_eq!(rows[2][2..], ["v2", "v2", "cp_one\\n", "b"], "{out}");
}

/// Wrong flags are exit code 2, and the error says what is right. Nobody is asked.
#[test]
fn wrong_flags() {
    for (flags, words) in [
        (&["--node-metadata", "[1]"][..], "write an object in JSON or YAML"),
        (&["--node-metadata", "@/nowhere"], "/nowhere: cannot be read"),
        (&["--locality", "a/b/c/d"], "write REGION/ZONE/SUB_ZONE"),
        (&["--header", "x"], "write KEY=VALUE"),
        (&["--header", "te=x"], "gRPC decides it"),
        (&["--timeout", "soon"], "write 250ms, 3s"),
        (&["--timeout", "0"], "must not be 0"),
        (&["--server", "cp:port"], "--server"),
        (&["--token-file", "x"], "write --tls, or https://"),
        (
            &["--token-file", "x", "--server", "http://cp:1", "--tls"],
            "excludes TLS",
        ),
        (&["--cert", "x"], "--key"),
    ] {
        fails(2, &[&["get", "cds"], flags].concat(), words);
    }
    fails(2, &["get", "zds"], "not a type");
}

/// What is waited for can be a version as the control plane calls it, though the relay's clients are told another.
#[tokio::test]
async fn the_version_of_the_control_plane() {
    let mut plane = Plane::start().await;
    let upstream = plane.address.to_string();
    let (_relay, admin, listener) = serve_from(&upstream);
    let mut watch = program(&["get", "cds", "a", "--watch", "-o", "name", "--server", &listener]);
    let mut client = watch.stdout(Stdio::null()).spawn().unwrap();
    let mut call = plane.call().await;
    // The relay first looks whether the control plane can be reached.
    while !call.path.ends_with("DeltaAggregatedResources") {
        call = plane.call().await;
    }
    call.delta().await;
    call.send(&named("v7", &["a"]));
    let wait = async |target: &str, timeout: &str| {
        let args = ["wait", target, "--timeout", timeout, "--admin", &admin].map(str::to_owned);
        let ran = tokio::task::spawn_blocking(move || output(&args.each_ref().map(String::as_str)));
        ran.await.unwrap()
    };
    let done = (Some(0), "accepted by 1 of 1 clients\n".to_owned(), String::new());
    assert_eq!(wait("cds/a@v7", "20s").await, done);
    let (code, _, error) = wait("cds/a@v6", "0").await;
    assert_eq!(code, Some(1));
    has(&error, "it has another version");
    // The same content under a new version is no change for the clients, but the control plane has called it v8.
    call.send(&named("v8", &["a"]));
    assert_eq!(wait("cds/a@v8", "20s").await, done);
    client.kill().unwrap();
    client.wait().unwrap();
}
