// SPDX-License-Identifier: Apache-2.0
//! Tests of what clients say they are, and of files with nodes in all shapes.

use std::fs;
use std::path::PathBuf;

use prost::Message as _;
use serde_json::json;

use super::*;
use crate::fleet::client::profile::Profile;
use crate::fleet::client::{Client, Output};
use crate::origin::ledger::Ledger;
use crate::origin::world::World;
use crate::wire::folder::Folder;
use crate::wire::kind;

/// A folder with one file.
fn file(text: &str) -> (Folder, PathBuf) {
    let folder = Folder::new().unwrap();
    let path = folder.0.join("written");
    fs::write(&path, text).unwrap();
    (folder, path)
}

fn ids(text: &str) -> anyhow::Result<Vec<String>> {
    let (_folder, path) = file(text);
    let nodes = nodes::read(&path)?;
    Ok(nodes.into_iter().map(|node| node.id).collect())
}

#[test]
fn without_flags_a_client_is_called_by_its_number() {
    let identity = IdentityShape::default().resolve().unwrap();
    let node = identity.node(17);
    assert_eq!(
        (&*node.id, &*node.cluster, &*node.user_agent_name),
        ("load-0000017", "load", "envoy")
    );
    assert_eq!(
        identity.json(17),
        json!({ "id": "load-0000017", "cluster": "load", "user_agent_name": "envoy" })
    );
    assert_eq!(identity.of_relay(), None);
}

#[test]
fn every_text_of_a_node_may_have_the_number() {
    let (_folder, metadata) = file("NAME: 'pod-{n}'\nlabels: { rank: ['{n}', 7] }\n");
    let shape = IdentityShape {
        node_id: Some("edge-{n}".to_owned()),
        node_cluster: Some("c{n}".to_owned()),
        locality: Some("r/z{n}/s".to_owned()),
        node_metadata: Some(metadata),
        user_agent: Some("envoy/1.40.0".to_owned()),
        ..IdentityShape::default()
    };
    let expected = json!({
        "id": "edge-3",
        "cluster": "c3",
        "locality": { "region": "r", "zone": "z3", "sub_zone": "s" },
        "metadata": { "NAME": "pod-3", "labels": { "rank": ["3", 7] } },
        "user_agent_name": "envoy",
        "user_agent_build_version": { "version": { "major_number": 1, "minor_number": 40 } },
    });
    let identity = shape.resolve().unwrap();
    assert_eq!(identity.json(3), expected);
    // A relay says itself what it is.
    let of_relay: serde_json::Value = serde_json::from_str(&identity.of_relay().unwrap()).unwrap();
    assert_eq!(
        (&of_relay["id"], &of_relay["metadata"]["NAME"]),
        (&json!("edge-0"), &json!("pod-0"))
    );
    assert_eq!(of_relay.as_object().unwrap().len(), 4);
}

#[test]
fn software_has_a_version_in_its_own_form() {
    let agent = |text: &str| {
        let shape = IdentityShape {
            user_agent: Some(text.to_owned()),
            ..IdentityShape::default()
        };
        shape.resolve().map(|identity| identity.json(0))
    };
    assert_eq!(
        agent("grpc-go/1.70-dev").unwrap()["user_agent_version"],
        json!("1.70-dev")
    );
    assert_eq!(agent("envoy").unwrap().get("user_agent_build_version"), None);
    for wrong in ["", "/1", "envoy/1.40", "envoy/new"] {
        assert!(agent(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn nodes_are_found_in_every_shape() {
    for (text, expected) in [
        (
            "- { id: a, cluster: c }\n- { id: b, newer_field: 1 }\n",
            &["a", "b"][..],
        ),
        ("{\"nodes\": [{\"id\": \"a\"}]}", &["a"]),
        ("id: a\nmetadata: { x: 1 }\n", &["a"]),
        ("node: { id: a }\nadmin: { access_log: [] }\n", &["a"]),
        ("{\"xds_servers\": [], \"node\": {\"id\": \"a\"}}", &["a"]),
        ("- node: { id: a }\n- node: { id: b }\n", &["a", "b"]),
        (
            "{\"configs\": [{\"@type\": \"x\", \"bootstrap\": {\"node\": {\"id\": \"a\"}, \"static_resources\": {}}}, {\"@type\": \"y\"}]}",
            &["a"],
        ),
        ("- { id: a }\n- { id: a }\n- { id: a, cluster: c }\n", &["a", "a"]),
    ] {
        assert_eq!(ids(text).unwrap(), expected, "{text}");
    }
}

#[test]
fn a_bad_file_of_nodes_is_told_with_its_place() {
    for (text, words) in [
        ("", "which has no node"),
        ("[]", "no node in it"),
        ("{\"configs\": []}", "no node in it"),
        ("- 7\n", "line 1: found `7`, which has no node"),
        ("- { id: a }\n- [ { id: b } ]\n", "line 2"),
        ("{ \"id\": [1] }", "id"),
        ("{ \"a\": ", "1:"),
        ("\u{fffe}%", "written"),
    ] {
        let error = format!("{:#}", ids(text).unwrap_err());
        assert!(error.contains(words), "{text}: {error}");
    }
    let missing = nodes::read(Path::new("/nowhere")).unwrap_err().to_string();
    assert!(missing.contains("cannot be read"), "{missing}");
}

#[test]
fn a_file_of_nodes_has_bounds() {
    let large = format!("- {{ id: {} }}\n", "a".repeat(1 << 20)).repeat(33);
    let error = ids(&large).unwrap_err().to_string();
    assert!(error.contains("larger than 32 MiB"), "{error}");
    let many = "- {id: a}\n".repeat(NODES_MAX_AND_ONE);
    let error = ids(&many).unwrap_err().to_string();
    assert!(error.contains("60001 nodes are too many"), "{error}");
}

const NODES_MAX_AND_ONE: usize = 60_001;

#[test]
fn clients_take_the_nodes_of_a_file_in_turns() {
    let (_folder, path) =
        file("- { id: a, cluster: old }\n- { id: 'b-{n}', cluster: old }\n- { id: a, cluster: old }\n");
    let shape = IdentityShape {
        nodes: Some(path),
        node_cluster: Some("new".to_owned()),
        ..IdentityShape::default()
    };
    let identity = shape.resolve().unwrap();
    let all: Vec<_> = (0..4).map(|number| identity.node(number)).collect();
    assert_eq!(
        all.iter().map(|node| &*node.id).collect::<Vec<_>>(),
        ["a", "b-1", "a", "b-3"]
    );
    assert!(all.iter().all(|node| node.cluster == "new"));
}

#[test]
fn a_header_or_a_token_that_cannot_be_sent_is_told_before_the_run() {
    let header = |text: &str| {
        let shape = IdentityShape {
            headers: vec![text.to_owned()],
            ..IdentityShape::default()
        };
        shape.resolve().and_then(|identity| identity.headers(0))
    };
    assert_eq!(
        header("X-Team=edge").unwrap(),
        [("x-team".to_owned(), "edge".to_owned())]
    );
    for wrong in ["x", "te=1", "x=\n"] {
        assert!(header(wrong).is_err(), "{wrong}");
    }
    let token = |file: PathBuf| {
        let shape = IdentityShape {
            token_file: Some(Pattern::same(&file)),
            ..IdentityShape::default()
        };
        shape.resolve()
    };
    let (_folder, path) = file(" abc.def\n");
    let identity = token(path.clone()).unwrap();
    assert_eq!(
        identity.headers(0).unwrap(),
        [("authorization".to_owned(), "Bearer abc.def".to_owned())]
    );
    // It is read again for the next connection.
    fs::write(&path, "new").unwrap();
    assert_eq!(identity.headers(0).unwrap()[0].1, "Bearer new");
    assert_eq!(identity.without_token().headers(0).unwrap(), []);
    for wrong in ["", "two words", &"x".repeat(70_000)] {
        fs::write(&path, wrong).unwrap();
        assert!(token(path.clone()).is_err());
    }
    assert!(format!("{:#}", token("/nowhere".into()).unwrap_err()).contains("token in /nowhere"));
}

/// The node is in the first request of a stream.
#[test]
fn a_client_says_its_node() {
    let shape = IdentityShape {
        node_id: Some("edge-{n}".to_owned()),
        ..IdentityShape::default()
    };
    let mut profile = Profile::plain(kind::Dialect::Delta, kind::Kind::Cds, 1);
    profile.identity = Arc::new(shape.resolve().unwrap());
    #[expect(clippy::disallowed_methods, reason = "any instant will do")]
    let now = std::time::Instant::now();
    let world = World::of(Arc::new(Ledger::new(kind::Kind::Cds, 1, 100, now)));
    let mut client = Client::new(5, Arc::new(profile), world);
    client.begin(now);
    let said = std::iter::from_fn(|| client.poll_output()).find_map(|output| match output {
        Output::Send(_, bytes) => Some(bytes),
        Output::Open(..) | Output::Post(..) => None,
    });
    let said = said.unwrap();
    let request =
        distributary::proto::envoy::service::discovery::v3::DeltaDiscoveryRequest::decode(said.get(5..).unwrap())
            .unwrap();
    assert_eq!(request.node.unwrap().id, "edge-5");
}

#[test]
fn a_token_is_signed_for_each_client() {
    use jsonwebtoken::{Algorithm, DecodingKey, Validation, decode};
    let folder = Folder::new().unwrap();
    let pair = rcgen::KeyPair::generate().unwrap();
    let key = folder.0.join("key.pem");
    fs::write(&key, pair.serialize_pem()).unwrap();
    let shape = |claims: &str| IdentityShape {
        token_key: Some(key.clone()),
        token_claims: Some(claims.to_owned()),
        ..IdentityShape::default()
    };
    let identity = shape(r#"{"iss":"load","sub":"ns/{n%20}/web-{n}","aud":["x"],"tier":{"a":["{n}",1]}}"#).resolve();
    let identity = identity.unwrap();
    assert_eq!((identity.has_token(), identity.token_file(3)), (true, None));
    let headers = identity.headers(47).unwrap();
    let token = headers[0].1.strip_prefix("Bearer ").unwrap();
    let public = DecodingKey::from_ec_der(pair.public_key_raw());
    let mut checks = Validation::new(Algorithm::ES256);
    checks.set_audience(&["x"]);
    let claims = decode::<serde_json::Value>(token, &public, &checks).unwrap().claims;
    assert_eq!(
        (&claims["sub"], &claims["tier"]),
        (&json!("ns/7/web-47"), &json!({ "a": ["47", 1] }))
    );
    assert_eq!(claims["exp"].as_u64().unwrap() - claims["iat"].as_u64().unwrap(), 3600);
    assert!(!format!("{identity:?}").contains("PRIVATE"));

    let wrong = |shape: IdentityShape| format!("{:#}", shape.resolve().unwrap_err());
    assert!(wrong(shape("[]")).starts_with("token claims: write an object in JSON, not `[]`"));
    let both = IdentityShape {
        token_file: Some(Pattern::same(&key)),
        ..shape("{}")
    };
    assert!(wrong(both).contains("one token"));
    fs::write(&key, "no key").unwrap();
    assert!(wrong(shape("{}")).contains("key.pem"));
}
