// SPDX-License-Identifier: Apache-2.0
//! `distributary get`: what it asks, what it prints, and its exit code.

use std::time::Duration;

use distributary::json::{Bounds, Schemas, Tree, Unknown};
use distributary::proto::envoy::service::discovery::v3::{DeltaDiscoveryResponse, DiscoveryResponse, Resource};
use distributary::proto::google::protobuf::Any;
use distributary::snapshot::{SnapshotIdentity, write};
use distributary::xds::{Changes, Cut, Name, Phase, Resource as Content, ResourceParts, TypeUrl, Update};
use tonic::Code;

use crate::plane::{Plane, soon};
use crate::{PATIENCE, SERVE, fails, has, now, printed, prints, program, ran, serve};

pub(crate) const CDS: &str = "type.googleapis.com/envoy.config.cluster.v3.Cluster";
const SDS: &str = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret";

pub(crate) type Outcome = (Option<i32>, String, String);

/// Runs the program with this plane as the server.
pub(crate) fn ask(plane: &Plane, args: &[&str]) -> tokio::task::JoinHandle<Outcome> {
    let server = plane.address.to_string();
    let mut command = program(&[&["get", "--server", &server], args].concat());
    tokio::task::spawn_blocking(move || ran(&mut command))
}

pub(crate) fn any(json: &str) -> Any {
    let tree = Tree::json(json.as_bytes(), Bounds::FILE).unwrap();
    Schemas::standard().resource(&tree, "", Unknown::Deny).unwrap().value
}

pub(crate) fn cluster(name: &str) -> Any {
    any(&format!(
        "{{\"@type\":\"{CDS}\",\"name\":\"{name}\",\"connect_timeout\":\"1.5s\"}}"
    ))
}

pub(crate) fn delta(type_url: &str, nonce: &str, put: &[(&str, Any)], removed: &[&str]) -> DeltaDiscoveryResponse {
    let resources = put.iter().map(|(name, any)| Resource {
        name: (*name).to_owned(),
        version: nonce.to_owned(),
        resource: Some(any.clone()),
        ..Default::default()
    });
    DeltaDiscoveryResponse {
        type_url: type_url.to_owned(),
        nonce: nonce.to_owned(),
        resources: resources.collect(),
        removed_resources: removed.iter().map(|name| (*name).to_owned()).collect(),
        ..Default::default()
    }
}

pub(crate) async fn answer(asked: tokio::task::JoinHandle<Outcome>) -> Outcome {
    soon("an answer", asked).await.unwrap()
}

/// C-08, E-01: the requests have the given node; missing names are listed, and the exit code is 1.
#[tokio::test]
async fn by_name() {
    let mut plane = Plane::start().await;
    #[rustfmt::skip]
    let names = ["cds", "a", "b", "--node-id", "me", "--node-cluster", "us", "--authority", "cp.example.com"];
    let asked = ask(&plane, &names);
    let mut call = plane.call().await;
    assert_eq!(call.authority, "cp.example.com");
    let request = call.delta().await;
    let node = request.node.unwrap();
    assert_eq!((node.id.as_str(), node.cluster.as_str()), ("me", "us"));
    assert_eq!(request.type_url, CDS);
    assert_eq!(request.resource_names_subscribe, ["a", "b"]);
    call.send(&delta(CDS, "1", &[("a", cluster("a"))], &["b"]));
    let (code, out, error) = answer(asked).await;
    assert_eq!(code, Some(1));
    let expected =
        format!("type_url: {CDS}\nresources:\n  - \"@type\": {CDS}\n    name: a\n    connect_timeout: \"1.500s\"\n");
    assert_eq!(out, expected);
    let missing = format!("b: {} has no such cds resource\n", plane.address);
    assert_eq!(error, missing);
}

/// Of a name that does not exist, the command says which one was probably meant, if the server tells what it has.
#[tokio::test]
async fn a_name_that_is_nearly_right() {
    let mut plane = Plane::start().await;
    let asked = ask(&plane, &["cds", "paymens"]);
    let mut call = plane.call().await;
    assert_eq!(call.delta().await.resource_names_subscribe, ["paymens"]);
    call.send(&delta(CDS, "1", &[], &["paymens"]));
    // What shares no subscription with names is asked on a stream of its own.
    let mut aside = plane.call().await;
    assert_eq!(aside.delta().await.resource_names_subscribe, [""; 0]);
    aside.send(&delta(
        CDS,
        "1",
        &[("cart", cluster("cart")), ("payments", cluster("payments"))],
        &[],
    ));
    let words = "has no such cds resource; did you mean `payments`?";
    let expected = format!("paymens: {} {words}\n", plane.address);
    assert_eq!(answer(asked).await, (Some(1), String::new(), expected));
}

/// C-21: virtual hosts cannot be requested in SotW; the command fails at once and says so.
#[tokio::test]
async fn virtual_hosts_need_delta() {
    let mut plane = Plane::start().await;
    for names in [&["main/a"][..], &[]] {
        let asked = ask(&plane, &[&["vhds", "--dialect", "sotw"], names].concat());
        let (code, out, error) = answer(asked).await;
        assert_eq!((code, out.as_str()), (Some(1), ""), "{error}");
        assert!(error.contains("only delta has this type"), "{error}");
    }
    assert!(plane.has_call().is_none());
}

/// A-01, E-20, E-23: a server that does not answer delta is asked in the other dialect, for everything again.
#[tokio::test]
async fn everything_of_an_older_server() {
    for code in [Code::Unimplemented, Code::Unknown, Code::Ok] {
        of_an_older_server(code).await;
    }
}

async fn of_an_older_server(refusal: Code) {
    let mut plane = Plane::start().await;
    let asked = ask(&plane, &["clusters", "-o", "name"]);
    let call = plane.call().await;
    assert!(call.path.ends_with("/DeltaAggregatedResources"));
    call.finish(refusal, "");
    let mut call = plane.call().await;
    assert!(call.path.ends_with("/StreamAggregatedResources"));
    assert!(call.sotw().await.resource_names.is_empty());
    call.send(&DiscoveryResponse {
        version_info: "1".to_owned(),
        type_url: CDS.to_owned(),
        nonce: "1".to_owned(),
        resources: vec![cluster("b"), cluster("a")],
        ..Default::default()
    });
    let expected = (Some(0), "a\nb\n".to_owned(), String::new());
    assert_eq!(answer(asked).await, expected);
}

/// A status that may pass has the reason why there is no answer, and nothing to do with the dialect.
#[tokio::test]
async fn a_server_that_cannot_answer_now() {
    let mut plane = Plane::start().await;
    let asked = ask(&plane, &["cds"]);
    plane.call().await.finish(Code::Unavailable, "the database is away");
    let words = format!(
        "{}: the stream ended: UNAVAILABLE: the database is away\n",
        plane.address
    );
    assert_eq!(answer(asked).await, (Some(1), String::new(), words));
    assert!(plane.has_call().is_none(), "it is not asked again");
}

/// A relay whose control plane is down says why at once.
#[test]
fn a_relay_that_knows_nothing() {
    let (_relay, _, listener) = serve(&SERVE[1..]);
    for what in [&["cds"][..], &["eds", "a"]] {
        let begun = now();
        let begins = format!("{listener}: the stream ended: UNAVAILABLE: no upstream is left to ask for ");
        let error = fails(1, &[&["get", "--server", &listener], what].concat(), &begins);
        has(&error, "; control plane 127.0.0.1:1: cannot connect to 127.0.0.1:1: ");
        // A client that has no other server waits for 8 s.
        assert!(begun.elapsed() < Duration::from_secs(8), "{:?}", begun.elapsed());
    }
}

/// If the time is over after a refusal, the refusal is shown.
#[tokio::test]
async fn no_answer_in_either_dialect() {
    let mut plane = Plane::start().await;
    let asked = ask(&plane, &["cds", "--timeout", "1s"]);
    plane.call().await.finish(Code::Unimplemented, "no delta here");
    let _sotw = plane.call().await;
    let (code, _, error) = answer(asked).await;
    assert_eq!(code, Some(1));
    let words = "the stream ended: UNIMPLEMENTED: no delta here; in the other dialect it did not answer within 1s";
    assert_eq!(error, format!("{}: {words}\n", plane.address));
}

/// Secrets are not shown, unless a flag asks for it.
#[tokio::test]
async fn secrets_are_redacted() {
    let secret = any(&format!(
        "{{\"@type\":\"{SDS}\",\"name\":\"s\",\"tls_certificate\":{{\"private_key\":{{\"inline_string\":\"hush\"}}}}}}"
    ));
    for (flags, shown) in [(&["sds", "s"][..], false), (&["sds", "s", "--show-secrets"][..], true)] {
        for form in ["yaml", "json", "wide"] {
            let mut plane = Plane::start().await;
            let asked = ask(&plane, &[flags, &["-o", form]].concat());
            let mut call = plane.call().await;
            call.delta().await;
            call.send(&delta(SDS, "1", &[("s", secret.clone())], &[]));
            let (code, out, error) = answer(asked).await;
            assert_eq!((code, error.as_str()), (Some(0), ""), "{form}");
            assert_eq!(out.contains("hush"), shown && form != "wide", "{form}: {out}");
            assert!(out.contains('s'), "{out}");
        }
    }
}

/// The command reports invalid resources.
#[tokio::test]
async fn what_is_not_valid() {
    let mut plane = Plane::start().await;
    let asked = ask(&plane, &["cds", "a", "--timeout", "1"]);
    let mut call = plane.call().await;
    call.delta().await;
    let secret = any(&format!("{{\"@type\":\"{SDS}\",\"name\":\"a\"}}"));
    call.send(&delta(CDS, "1", &[("a", secret)], &[]));
    assert!(call.delta().await.error_detail.is_some());
    let (code, out, error) = answer(asked).await;
    assert_eq!((code, out.as_str()), (Some(1), ""));
    assert!(error.contains("a: ") && error.contains("within 1s"), "{error}");
    assert!(error.contains("responses rejected as invalid: 1;"), "{error}");
}

/// Changes are printed as they come.
#[tokio::test(flavor = "multi_thread")]
async fn watching() {
    let mut plane = Plane::start().await;
    let server = plane.address.to_string();
    let args = ["get", "cds", "a", "--watch", "-o", "name", "--server", &server];
    let mut child = program(&args).spawn().unwrap();
    let lines = printed(&mut child);
    let mut call = plane.call().await;
    call.delta().await;
    let changed = any(&format!("{{\"@type\":\"{CDS}\",\"name\":\"a\"}}"));
    for (nonce, put, removed, line) in [
        ("1", &[("a", cluster("a"))][..], &[][..], "+ a"),
        ("2", &[("a", changed)], &[], "~ a"),
        ("3", &[], &["a"], "- a"),
    ] {
        call.send(&delta(CDS, nonce, put, removed));
        assert_eq!(lines.recv_timeout(PATIENCE).unwrap(), line);
    }
    child.kill().unwrap();
    child.wait().unwrap();
}

/// An error says what is wrong and where.
#[test]
fn nobody_is_there() {
    let words = "127.0.0.1:1: cannot connect to 127.0.0.1:1: ";
    fails(1, &["get", "cds", "--server", "127.0.0.1:1"], words);
}

/// The words of a server stay on their line, whatever is in them.
#[tokio::test]
async fn control_characters_are_escaped() {
    let mut plane = Plane::start().await;
    let asked = ask(&plane, &["cds"]);
    let call = plane.call().await;
    call.finish(Code::PermissionDenied, "no%0AINFO forged %1B[2J");
    let (code, _, error) = soon("the answer", asked).await.unwrap();
    assert_eq!(code, Some(1));
    assert!(error.contains("no\\nINFO forged \\u{1b}[2J"), "{error}");
    assert_eq!(error.lines().count(), 1, "{error}");
}

/// Writes a snapshot with a cluster.
fn stock(file: &str) -> std::path::PathBuf {
    let type_url = TypeUrl::new(CDS);
    let any = cluster("a");
    let parts = ResourceParts {
        type_url: &type_url,
        name: Name::from("a"),
        aliases: Vec::new(),
        passed_on: &[],
        body: &any.value,
        endpoints: None,
        received: now(),
    };
    let put = Update::Put(std::sync::Arc::new(Content::new(parts, 0)), None);
    let changes = Changes {
        type_url: type_url.clone(),
        wildcard: true,
        updates: vec![put],
        complete: Some(true),
        answered: Some(true),
        phase: Phase::Steady,
    };
    let (cut, _) = Cut::default().with(&changes);
    let path = std::path::PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(file);
    let of = SnapshotIdentity {
        server: "cp".to_owned(),
        class: String::new(),
    };
    write(&path, &of, &cut, false).unwrap();
    path
}

/// A relay's snapshot is read like a server's answer.
#[test]
fn what_is_on_disk() {
    let path = stock("get.snapshot");
    let file = path.to_str().unwrap();
    assert_eq!(prints(&["get", "cds", "--snapshot", file, "-o", "name"]), "a\n");
    let words = "does not hold all eds resources";
    fails(1, &["get", "eds", "--snapshot", file, "-o", "name"], words);
    fails(1, &["get", "cds", "--snapshot", "/nowhere"], "/nowhere: cannot be read");
}

/// Somebody who takes the admin address for an xDS port is told at once what it is.
#[test]
fn the_admin_address_is_no_xds_port() {
    let (_relay, admin, _) = serve(&SERVE[1..]);
    let words = ": this is the admin address of a relay, ";
    fails(1, &["get", "cds", "--server", &admin], words);
}
