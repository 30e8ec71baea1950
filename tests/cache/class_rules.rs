// SPDX-License-Identifier: Apache-2.0
//! From a client's node on the wire to the node that its class shows to a control plane.

use cache::{Routes, Scopes};
use classes::{Classes, Member, Members, Node, Parts, Passes, Path, Rule, Selector};
use prost::Message as _;
use proto::envoy::config::core::v3 as core;
use proto::google::protobuf::{Struct, Value, value::Kind};
use protocol::read_node;

use super::scopes::Log;
use super::*;

fn text(text: &str) -> Value {
    Value {
        kind: Some(Kind::StringValue(text.to_owned())),
    }
}

fn map(members: &[(&str, Value)]) -> Value {
    let fields = members
        .iter()
        .map(|(key, value)| ((*key).to_owned(), value.clone()))
        .collect();
    Value {
        kind: Some(Kind::StructValue(Struct { fields })),
    }
}

fn metadata(members: &[(&str, Value)]) -> Option<Struct> {
    match map(members).kind {
        Some(Kind::StructValue(members)) => Some(members),
        _ => None,
    }
}

/// K-03, K-04: the values that divide the classes are read at their paths, and written back there, even if keys have dots in
/// them.
#[test]
fn a_key_is_written_where_it_was_read() {
    let nested = map(&[("kubernetes", map(&[("io/name", text("nested"))]))]);
    let labels = map(&[("app.kubernetes.io/name", text("web")), ("app", nested)]);
    let client = core::Node {
        metadata: metadata(&[("LABELS", labels)]),
        ..Default::default()
    };
    let presented = |parts: &[&str]| {
        let key = vec![Selector::Metadata(Path::new(parts.iter().copied()))];
        let classes = Classes::new(vec![Rule { key, ..Rule::default() }]);
        classes
            .class(&read_node(&client), &[])
            .presented()
            .over(&core::Node::default())
            .metadata
    };
    let only = |value: Value| metadata(&[("LABELS", value)]);
    assert_eq!(
        presented(&["LABELS", "app.kubernetes.io/name"]),
        only(map(&[("app.kubernetes.io/name", text("web"))]))
    );
    let inner = map(&[("app", map(&[("kubernetes", map(&[("io/name", text("nested"))]))]))]);
    assert_eq!(presented(&["LABELS", "app", "kubernetes", "io/name"]), only(inner));
    assert_eq!(presented(&["LABELS", "app.kubernetes", "io/name"]), metadata(&[]));
}

fn number(number: f64) -> Value {
    Value {
        kind: Some(Kind::NumberValue(number)),
    }
}

fn list(values: &[Value]) -> Value {
    let list = proto::google::protobuf::ListValue {
        values: values.to_vec(),
    };
    Value {
        kind: Some(Kind::ListValue(list)),
    }
}

/// A client whose node has every kind of field.
fn client() -> core::Node {
    core::Node {
        id: "sidecar~1".to_owned(),
        cluster: "web".to_owned(),
        metadata: metadata(&[
            ("TENANT", text("blue")),
            ("IDLE_TIMEOUT", number(33.0)),
            ("PORTS", list(&[number(80.0), text("http")])),
            (
                "LABELS",
                map(&[("app.io/name", text("web")), ("plain", map(&[("deep", list(&[]))]))]),
            ),
            ("distributary.relays", list(&[text("below")])),
        ]),
        locality: Some(core::Locality {
            zone: "a".to_owned(),
            ..Default::default()
        }),
        user_agent_name: "envoy".to_owned(),
        user_agent_version_type: Some(core::node::UserAgentVersionType::UserAgentBuildVersion(
            b"v".to_vec().into(),
        )),
        extensions: vec![b"extension".to_vec().into()],
        client_features: vec!["xds.config.resource-in-sotw".to_owned(), "other".to_owned()],
        listening_addresses: vec![b"address".to_vec().into()],
    }
}

fn relay() -> core::Node {
    core::Node {
        id: "relay".to_owned(),
        cluster: "relays".to_owned(),
        metadata: metadata(&[
            ("OWN", text("x")),
            ("TENANT", text("none")),
            ("LABELS", map(&[("own", text("y"))])),
        ]),
        locality: Some(core::Locality {
            region: "r".to_owned(),
            ..Default::default()
        }),
        client_features: vec!["feature".to_owned()],
        ..Default::default()
    }
}

fn members(members: &[(&str, bool)]) -> Members {
    let member = |(path, below): &(&str, bool)| Member {
        path: Path::read(path).unwrap_or_else(|error| Path::new([error.as_str()])),
        below: *below,
    };
    Members::These(members.iter().map(member).collect())
}

/// What is passed on of `client`, laid over the relay's own node.
fn passed(metadata: Members, client: &core::Node) -> core::Node {
    let passes = Passes::Parts(Parts {
        metadata,
        locality: false,
        user_agent: false,
    });
    passes.give(passes.take(client).as_deref(), relay())
}

/// K-04: a field that is named is passed on whatever its kind, and replaces the relay's; the rest is the relay's.
#[test]
fn parts_of_a_client_are_passed_on() {
    let some = |some: &[(&str, bool)], client: &core::Node| passed(members(some), client).metadata;
    let own = |more: &[(&str, Value)]| {
        metadata(
            &[
                &[
                    ("OWN", text("x")),
                    ("TENANT", text("none")),
                    ("LABELS", map(&[("own", text("y"))])),
                ],
                more,
            ]
            .concat(),
        )
    };
    let labels = || map(&[("app.io/name", text("web")), ("plain", map(&[("deep", list(&[]))]))]);
    assert_eq!(some(&[], &client()), own(&[]));
    assert_eq!(some(&[("TENANT", false)], &client()), own(&[("TENANT", text("blue"))]));
    let numbers = own(&[
        ("IDLE_TIMEOUT", number(33.0)),
        ("PORTS", list(&[number(80.0), text("http")])),
    ]);
    assert_eq!(some(&[("IDLE_TIMEOUT", false), ("PORTS", false)], &client()), numbers);
    assert_eq!(some(&[("LABELS", true)], &client()), own(&[("LABELS", labels())]));
    assert_eq!(some(&[("LABELS", false)], &client()), own(&[("LABELS", labels())]));
    let one = map(&[("own", text("y")), ("app.io/name", text("web"))]);
    assert_eq!(
        some(&[("LABELS.\"app.io/name\"", false)], &client()),
        own(&[("LABELS", one)])
    );
    // A value that the client does not have, or has in another form than the rule expects, is absent.
    let without = metadata(&[("OWN", text("x")), ("LABELS", map(&[("own", text("y"))]))]);
    assert_eq!(some(&[("TENANT", true)], &client()), without);
    assert_eq!(some(&[("TENANT", false)], &core::Node::default()), without);
    // K-25: only the relay sets the list of relays.
    assert_eq!(some(&[("\"distributary.relays\"", false)], &client()), own(&[]));
    let mut all = client().metadata.unwrap();
    all.fields.remove("distributary.relays");
    assert_eq!(passed(Members::All, &client()).metadata, Some(all));
    assert_eq!(passed(Members::All, &core::Node::default()).metadata, None);
    let place = Passes::Parts(Parts {
        locality: true,
        user_agent: true,
        ..Parts::default()
    });
    let node = place.give(place.take(&client()).as_deref(), relay());
    let (of, from) = (client(), relay());
    assert_eq!(node.locality, of.locality);
    assert_eq!(node.user_agent_name, of.user_agent_name);
    assert_eq!(node.user_agent_version_type, of.user_agent_version_type);
    assert_eq!(node.id, from.id);
    assert_eq!(node.cluster, from.cluster);
    assert_eq!(node.metadata, from.metadata);
}

/// A client with this node, in its class.
fn client_of(classes: &Classes, wire: &core::Node) -> Arc<Node> {
    let mut node = read_node(wire);
    node.class = Arc::new(classes.class(&node, &[]));
    node.passed = node.class.take(wire);
    Arc::new(node)
}

/// The view of a client with this node, and the node that its control plane sees.
#[expect(clippy::expect_used, reason = "a test fails by panicking")]
fn enter(scopes: &Scopes, classes: &Classes, wire: &core::Node) -> (Seat, Option<core::Node>) {
    let seat = scopes
        .enter(&client_of(classes, wire), None, 0, &Arc::default())
        .expect("there is room");
    let created = scopes.take_created();
    let node = created.first().map(|view| scopes.introduce(view, &relay()).0);
    (seat, node)
}

/// K-04, K-25: everything of a client's node is passed on, except what it reads and the relays that it came through; later
/// changes of the node have no effect.
#[test]
fn all_of_a_client_is_passed_on() {
    let rule = Rule {
        key: vec![Selector::Id],
        passes: Passes::Whole,
        ..Rule::default()
    };
    let classes = Classes::new(vec![rule]);
    let scopes = Scopes::new(classes.clone(), Routes::default(), settings(), 0);
    let mut expected = client();
    expected.metadata.as_mut().unwrap().fields.remove("distributary.relays");
    expected.client_features = vec!["feature".to_owned()];
    let log = Log::default();
    tracing::subscriber::with_default(log.clone(), || {
        let (seat, node) = enter(&scopes, &classes, &client());
        assert_eq!(node, Some(expected.clone()));
        for port in [1.0, 2.0] {
            let mut changed = client();
            changed
                .metadata
                .as_mut()
                .unwrap()
                .fields
                .insert("PORTS".to_owned(), list(&[number(port)]));
            let (again, node) = enter(&scopes, &classes, &changed);
            assert!(Arc::ptr_eq(again.view(), seat.view()) && node.is_none());
            assert_eq!(scopes.introduce(seat.view(), &relay()).0, expected);
        }
    });
    let lines = log.lines();
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(
        lines[0].starts_with("clients that differ in `metadata.PORTS` share one view"),
        "{lines:?}"
    );
    // Names with an authority are asked for as the relay.
    let seat = scopes
        .enter(
            &client_of(&classes, &client()),
            Some(&Arc::from("a")),
            0,
            &Arc::default(),
        )
        .unwrap();
    assert_eq!(scopes.introduce(seat.view(), &relay()).0, relay());
}

/// 60 KB of metadata are passed on; what is kept of them is not more than arrived, and nothing if no rule passes anything on.
#[test]
fn much_metadata_is_passed_on() {
    let mut large = client();
    let fields = &mut large.metadata.as_mut().unwrap().fields;
    fields.extend((0..3000).map(|n| (format!("k{n}"), list(&[number(f64::from(n))]))));
    assert!(large.encoded_len() > 60_000, "{}", large.encoded_len());
    let keeps = |passes: Passes| {
        let classes = Classes::new(vec![Rule {
            key: vec![Selector::Id],
            passes,
            ..Rule::default()
        }]);
        client_of(&classes, &large).passed.as_ref().map(|taken| taken.bytes())
    };
    assert_eq!(keeps(Passes::Nothing), None);
    assert_eq!(
        keeps(Passes::Parts(Parts {
            locality: true,
            ..Parts::default()
        })),
        Some(5)
    );
    assert!(keeps(Passes::Whole).unwrap() < large.encoded_len());
    assert_eq!(passed(Members::All, &large).metadata.unwrap().fields.len(), 3004);
    // A further client costs nothing more.
    assert!(size_of::<Node>() <= 208, "{}", size_of::<Node>());
}
