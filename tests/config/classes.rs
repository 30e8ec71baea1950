// SPDX-License-Identifier: Apache-2.0
//! Classes of clients: what can be configured, and the errors and warnings that an operator gets before clients are affected.

use distributary::classes::{Class, Classes, Member, Members, Parts, Passes, Path, Pattern, Piece, Rule, Selector};

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
        matches: vec![(label("a.b/c"), Pattern::of("x"))],
        key: vec![
            label("app.kubernetes.io/name"),
            Selector::Metadata(Path::new(["A", "B"])),
        ],
        id: Some(vec![Piece::Text("r/".to_owned()), Piece::Key(0)]),
        cluster: None,
        passes: Passes::Nothing,
        credentials: None,
    };
    assert_eq!(config.classes, Classes::new(vec![rule.clone()]));
    let class = Class {
        rule: Some(Arc::new(rule)),
        key: Arc::new(["web".to_owned(), String::new()]),
        endpoint_collections: false,
    };
    assert_eq!(class.presented().id.as_deref(), Some("r/web"));
    #[rustfmt::skip]
    let rows = [
        ("metadata.LABELS.\"a.b", "`LABELS.\"a.b` has a quote that is not closed"),
        ("metadata.LABELS.a\"b\"", "`LABELS.a\"b\"` has a quote inside a key; put quotes around the whole key"),
        ("metadata.A..B", "`A..B` has an empty key; write \"\" if the key is empty"),
    ];
    for (path, problem) in rows {
        let said = complaint(&format!("classes: [{{key: ['{path}']}}]\n"));
        assert_eq!(said, format!("relay.yaml:1:18: classes[0].key: {problem}"));
    }
}

#[test]
fn a_label_without_quotes_is_warned_of() {
    let said = "relay.yaml:3:11: classes[0].key: every dot begins a nested key; if the dots belong to a label, quote the label: \
                metadata.LABELS.\"app.kubernetes.io/name\"";
    assert_eq!(warnings("  - key: [metadata.LABELS.app.kubernetes.io/name]\n"), [said]);
    assert_eq!(
        warnings("  - key: [metadata.LABELS.\"app.kubernetes.io/name\", metadata.LABELS.a/b, metadata.A.B.C]\n").len(),
        0
    );
}

const CONSEQUENCE: &str = "a control plane that keeps one snapshot for each node id would give the clients of one view the resources of another";

/// K-28: a warning for views that a control plane may not tell apart, if the configuration shows it.
#[test]
fn node_ids_that_views_share_are_warned_of() {
    let missing = |fields: &str, id: &str| {
        vec![format!(
            "relay.yaml:3:5: classes[0]: {fields} not in the node id, which is {id}: views that differ only there present the same \
             node id, and {CONSEQUENCE}; write every field of `key` into `node.id`, or leave it out of `key`"
        )]
    };
    let next = "`{cluster}{metadata.A}` gives the same text for different values (`a` and `bc`, `ab` and `c`)";
    let next = vec![format!(
        "relay.yaml:3:5: classes[0].node.id: {next}, and {CONSEQUENCE}; put a text between the two that no value contains"
    )];
    let client = "the client's `id`";
    #[rustfmt::skip]
    let rows = [
        // No warning: one class has every field, or presents its client's id; patterns keep classes apart.
        ("  - {key: [cluster]}\n", vec![]),
        ("  - {key: [id]}\n", vec![]),
        ("  - {key: [cluster, metadata.A], node: {id: 'x/{metadata.A}/{cluster}'}}\n", vec![]),
        ("  - {match: {cluster: edge}, key: [cluster, id]}\n", vec![]),
        ("  - {match: {cluster: 'a*'}, key: [cluster]}\n  - {match: {cluster: 'b*'}, key: [cluster]}\n", vec![]),
        ("  - {match: {id: 'gateway~*'}, key: [id]}\n  - {key: [cluster]}\n", vec![]),
        ("  - {match: {cluster: a}, key: [id]}\n", vec![]),
        ("  - {match: {cluster: a}, node: {id: a}}\n  - {match: {cluster: b}, node: {id: b}}\n", vec![]),
        // The template lacks fields.
        ("  - {key: [cluster, metadata.A, id], node: {id: 'x/{cluster}'}}\n",
            missing("`metadata.A` and `id` of `key` are", "`node.id`")),
        ("  - {key: [cluster, metadata.A, id], node: {id: x}}\n",
            missing("`cluster`, `metadata.A` and `id` of `key` are", "`node.id`")),
        ("  - {key: [cluster], node: {id: x}}\n", missing("`cluster` of `key` is", "`node.id`")),
        // The client's id alone.
        ("  - {key: [id, cluster]}\n", missing("`cluster` of `key` is", client)),
        ("  - {match: {cluster: 'e*'}, key: [cluster, id]}\n", missing("`cluster` of `key` is", client)),
        // Values that look the same when joined.
        ("  - {key: [cluster, metadata.A], node: {id: '{cluster}{metadata.A}'}}\n", next),
    ];
    for (classes, expected) in rows {
        assert_eq!(warnings(classes), expected, "{classes}");
    }
}

/// K-28: two classes whose views can have the same node id.
#[test]
fn classes_that_can_meet_are_warned_of() {
    let meet = |line: usize, index: usize, other: &str| {
        vec![format!(
            "relay.yaml:{line}:5: classes[{index}]: its views can present the same node id as {other}; {CONSEQUENCE}; give it a `node.id` \
             that the other cannot have"
        )]
    };
    #[rustfmt::skip]
    let rows = [
        ("  - {match: {cluster: a}, key: [locality.zone]}\n  - {key: [locality.zone]}\n", meet(4, 1, "classes[0]")),
        ("  - {match: {cluster: a}, key: [id]}\n  - {match: {cluster: b}, key: [id]}\n", meet(4, 1, "classes[0]")),
        ("  - {match: {cluster: a}}\n", meet(3, 0, "clients that no rule matches")),
        ("  - {match: {cluster: a}}\n  - {}\n", meet(4, 1, "classes[0]")),
        ("  - {match: {id: 'a*'}, key: [id]}\n  - {match: {id: '*b'}, key: [id]}\n", meet(4, 1, "classes[0]")),
        ("  - {match: {cluster: 'x/*'}, key: [cluster]}\n  - {node: {id: relay/cluster=x%2Fy}}\n",
            meet(4, 1, "classes[0]")),
        ("  - {match: {cluster: 'x/*'}, key: [cluster]}\n  - {node: {id: relay/cluster=x/y}}\n", vec![]),
    ];
    for (classes, expected) in rows {
        assert_eq!(warnings(classes), expected, "{classes}");
    }
    let authority = "upstream: {xds_servers: [{server_uri: cp:1}], authorities: {a: {}}}\n";
    let said = good(&format!("node: {{id: relay}}\nclasses:\n  - {{}}\n{authority}")).warnings;
    assert_eq!(said, meet(3, 0, "the view that all clients share"));
}

/// The shipped files cause no warning.
#[test]
fn no_shipped_file_is_warned_of() {
    for name in ["reference.yaml", "node-classes.yaml"] {
        let config = Config::load(Some(&folder().join(name)), &Flags::default()).unwrap();
        // The warning of a class with credentials is intended.
        let others = config.warnings.iter().filter(|said| !said.contains("].credentials: "));
        assert_eq!(others.count(), 0, "{:?}", config.warnings);
    }
}

/// K-04: which parts of its clients' nodes a class passes on.
#[test]
fn parts_of_the_node_are_passed_on() {
    let passes = |node: &str| {
        good(&format!("classes: [{{key: [id], node: {node}}}]\n{SERVER}"))
            .classes
            .rules()[0]
            .passes
            .clone()
    };
    let parts = |metadata, locality, user_agent| {
        Passes::Parts(Parts {
            metadata,
            locality,
            user_agent,
        })
    };
    let these = |members: &[(&str, bool)]| {
        let members = members.iter().map(|(path, below)| Member {
            path: Path::read(path).unwrap(),
            below: *below,
        });
        Members::These(members.collect())
    };
    assert_eq!(passes("{}"), Passes::Nothing);
    assert_eq!(passes("{metadata: []}"), Passes::Nothing);
    assert_eq!(passes("client"), Passes::Whole);
    assert_eq!(
        passes("{metadata: all, locality: client}"),
        parts(Members::All, true, false)
    );
    let some = [("TENANT", false), ("LABELS", true), ("A.\"b.c\"", false)];
    assert_eq!(
        passes("{metadata: [TENANT, 'LABELS.*', 'A.\"b.c\"'], user_agent: client}"),
        parts(these(&some), false, true)
    );
}

#[test]
fn what_cannot_be_passed_on_is_told() {
    #[rustfmt::skip]
    let rows = [
        ("clint", "1:29: classes[0].node: `clint` is not a node; write client, or the parts of one"),
        ("{metadata: any}", "1:40: classes[0].node.metadata: `any` is not a list; write all, or [KEY, \"KEY.*\"]"),
        (
            "{metadata: [metadata.A]}",
            "1:41: classes[0].node.metadata: `metadata.A` must be relative to the metadata; write `A`, or \"metadata\" in \
          quotes if that is its key",
        ),
        (
            "{metadata: ['A*']}",
            "1:41: classes[0].node.metadata: `A*` has a `*` that is not the whole last key; write `all` for all of the \
          metadata, \"KEY.*\" for all below a key, and quotes around a key that has a `*` in it",
        ),
        ("{locality: relay}",
            "1:40: classes[0].node.locality: `relay` cannot be passed on; write client, or leave it out"),
        ("{user_agent: x}", "1:42: classes[0].node.user_agent: `x` cannot be passed on; write client, or leave it out"),
        ("[client]", "1:29: classes[0].node: expected a single value, or a mapping, found a list"),
    ];
    for (node, problem) in rows {
        let said = complaint(&format!("classes: [{{key: [id], node: {node}}}]\n"));
        assert_eq!(said, format!("relay.yaml:{problem}"));
    }
    let said = "relay.yaml:3:5: classes[0].node: the control plane sees only the node of the client that opened the view, but other \
                clients share it; put `id` into `key`, or write which parts of the node are passed on";
    assert_eq!(
        warnings("  - {match: {cluster: 'a*'}, key: [id], node: client}\n"),
        Vec::<String>::new()
    );
    assert_eq!(warnings("  - {match: {id: 'a*'}, node: client}\n"), [said]);
}

/// K-02: what is said of identities and of fields of patterns that cannot be.
#[test]
fn bad_identities_and_patterns() {
    #[rustfmt::skip]
    let rows = [
        ("{key: [identity.spifee]}",
            "1:18: classes[0].key: `spifee` is not a kind of identity; did you mean identity.spiffe?"),
        ("{key: [identity.who]}",
            "1:18: classes[0].key: `who` is not a kind of identity; write claim, dns, gid, ip, jwt, spiffe, subject, uid, uri"),
        ("{match: {id: '{ns', cluster: x}}",
            "1:24: classes[0].match: `{ns` has an unmatched brace; write {{ or }} for a literal brace"),
        ("{match: {cluster: '{ns}', identity.dns: '{ns}.x'}}",
            "1:51: classes[0].match: `{ns}` is there twice; give each field its own name"),
        (
            "{match: {identity.dns: '{id}.x'}}",
            "1:34: classes[0].match: `{id}` is also a field of a node; give it another name, or write {{id}} for the text in braces",
        ),
        ("{match: {identity.dns: '{ns}.x'}, node: {id: 'r/{ns}'}}",
            "1:56: classes[0].node.id: `{ns}` is not in `key`, so clients that share a view may differ in it; add it there"),
    ];
    for (class, said) in rows {
        assert_eq!(
            complaint(&format!("classes: [{class}]\n")),
            format!("relay.yaml:{said}"),
            "{class}"
        );
    }
}

/// K-02: the configuration that the log advises is valid.
#[test]
fn a_rule_is_written_as_it_is_read() {
    let rules = |text: &str| good(&format!("classes: [{text}]\n{SERVER}")).classes.rules().to_vec();
    for text in [
        "{ key: [cluster] }",
        "{ match: { cluster: 'edge-*', metadata.TIER: gold }, key: [cluster, locality.zone, metadata.A.B] }",
        "{ match: { id: 'o''x: #1' }, key: [id, 'metadata.LABELS.\"app.io/name\"'], node: client }",
        "{ key: [cluster], node: { id: 'r{{/{cluster}', cluster: '{cluster}' } }",
        "{ key: [id], node: { metadata: [TENANT, 'LABELS.*', 'A.\"b.c\"'], locality: client, user_agent: client } }",
        "{ key: ['metadata.\"a\\\"}b\"'], node: { id: 'x/{metadata.\"a\\\"}b\"}', metadata: all } }",
    ] {
        let rules = rules(text);
        assert_eq!(rules[0].to_string(), text);
    }
}
