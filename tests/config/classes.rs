//! Classes of clients: what may stand there, and what the operator is told before any client suffers from it.

use distributary::xds::{Class, Path};

use super::*;

fn warnings(classes: &str) -> Vec<String> {
    good(&format!("node: {{id: relay}}\nclasses:\n{classes}{SERVER}")).warnings
}

/// K-03: keys of labels have dots in them; without quotes every dot leads to a key within a key.
#[test]
fn keys_with_dots_stand_in_quotes() {
    let config = good(&format!(
        "classes: [{{match: {{'metadata.LABELS.\"a.b/c\"': x}}, key: [metadata.LABELS.\"app.kubernetes.io/name\", metadata.A.B], \
         node: {{id: 'r/{{metadata.LABELS.\"app.kubernetes.io/name\"}}'}}}}]\n{SERVER}"
    ));
    let label = |name| Selector::Metadata(Path::new(["LABELS", name]));
    let rule = Rule {
        matches: vec![(label("a.b/c"), "x".to_owned())],
        key: vec![
            label("app.kubernetes.io/name"),
            Selector::Metadata(Path::new(["A", "B"])),
        ],
        id: Some(vec![Piece::Text("r/".to_owned()), Piece::Key(0)]),
        cluster: None,
    };
    assert_eq!(config.classes, Classes::new(vec![rule]));
    let class = Class {
        rule: Some(0),
        key: vec!["web".to_owned(), String::new()],
        endpoint_collections: false,
    };
    assert_eq!(config.classes.presented(&class).id.as_deref(), Some("r/web"));
    for (path, problem) in [
        (
            "metadata.LABELS.\"a.b",
            "`LABELS.\"a.b` has a quote without its partner",
        ),
        (
            "metadata.LABELS.a\"b\"",
            "`LABELS.a\"b\"` has a quote inside a key; put quotes around the whole key",
        ),
        (
            "metadata.A..B",
            "`A..B` has an empty key; write \"\" if the key is empty",
        ),
    ] {
        let said = complaint(&format!("classes: [{{key: ['{path}']}}]\n"));
        assert_eq!(said, format!("relay.yaml:1:18: classes[0].key: {problem}"));
    }
}

#[test]
fn a_label_without_quotes_is_warned_of() {
    let said = "relay.yaml:3:11: classes[0].key: every dot leads to a key within a key; if this is a label, dots and all, quote its \
                key: metadata.LABELS.\"app.kubernetes.io/name\"";
    assert_eq!(warnings("  - key: [metadata.LABELS.app.kubernetes.io/name]\n"), [said]);
    assert_eq!(
        warnings("  - key: [metadata.LABELS.\"app.kubernetes.io/name\", metadata.LABELS.a/b, metadata.A.B.C]\n").len(),
        0
    );
}
