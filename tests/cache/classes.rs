//! From a client's node as it is on the wire to the node that a control plane sees of its class.

use distributary::proto::envoy::config::core::v3 as core;
use distributary::proto::google::protobuf::{Struct, Value, value::Kind};
use distributary::protocol::read_node;
use distributary::xds::{Classes, Path, Rule, Selector};

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

/// K-03, K-04: what divides the classes is read where its path leads, and written back there, also where keys have dots in them.
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
            .presented(&classes.class(&read_node(&client)))
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
