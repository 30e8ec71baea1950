// SPDX-License-Identifier: Apache-2.0
//! YAML: what it means, and what is rejected.

use distributary::json::{Bounds, Fault, Schemas, Tree, Unknown};

use crate::{decode, rows};

fn yaml(text: &str) -> Result<Tree, Fault> {
    Tree::yaml(text.as_bytes(), Bounds::FILE)
}

fn round(name: &str, text: &str) -> String {
    let tree = yaml(text).unwrap_or_else(|fault| panic!("{text}: {fault}"));
    let parsed = Schemas::standard()
        .encode(name, &tree, "", Unknown::Deny)
        .unwrap_or_else(|fault| panic!("{text}: {fault}"));
    decode(name, &parsed.value)
}

fn complaint(name: &str, text: &str) -> String {
    match yaml(text) {
        Err(fault) => fault.to_string(),
        Ok(tree) => Schemas::standard()
            .encode(name, &tree, "", Unknown::Deny)
            .unwrap_err()
            .to_string(),
    }
}

const CLUSTER: &str = "envoy.config.cluster.v3.Cluster";

/// J-05: if the field is a string, any scalar is a string; elsewhere the field decides what it is.
/// What cannot be seen is escaped, in both forms, and means the same.
#[test]
fn nothing_is_hidden() {
    let json = serde_json::json!({"a\u{202e}b": "zero\u{200b}width \u{e0041}tag \u{1F980}", "c": ["\u{2028}", "\u{fe0f}\u{7f}"]});
    let tree = crate::tree(&json.to_string());
    let value = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
    let (as_json, as_yaml) = (tree.to_json(), tree.to_yaml());
    for text in [&as_json, &as_yaml] {
        let hidden = |c: &char| *c != '\n' && xds::is_escaped(*c);
        assert_eq!(text.chars().find(hidden), None, "{text:?}");
        assert!(text.contains("\\u202e") && text.contains('\u{1F980}'), "{text}");
    }
    assert_eq!(value(&as_json), json);
    let back = yaml(&as_yaml).unwrap_or_else(|fault| panic!("{as_yaml}: {fault}"));
    assert_eq!(value(&back.to_json()), json, "{as_yaml}");
}

#[test]
fn scalars_are_what_their_field_says() {
    for name in [
        "yes",
        "1e3",
        "010",
        "true",
        "0x1F",
        ".5",
        "2026-11-20",
        "1_000",
        "=",
        "\"null\"",
        "!!str null",
        "! ~",
    ] {
        let text = format!("name: {name}\n");
        let plain = name
            .trim_start_matches("!!str ")
            .trim_start_matches("! ")
            .trim_matches('"');
        assert_eq!(
            round(CLUSTER, &text),
            format!("{{\"name\":{}}}", serde_json::Value::from(plain)),
            "{name}"
        );
    }
    for null in ["", "~", "null", "!!null x"] {
        assert_eq!(round(CLUSTER, &format!("name: {null}\n")), "{}", "{null}");
    }
    for [text, written] in rows(
        r#"
        connect_timeout: 1s => {"connect_timeout":"1s"}
        per_connection_buffer_limit_bytes: 0x10 => {"per_connection_buffer_limit_bytes":16}
        per_connection_buffer_limit_bytes: 010 => {"per_connection_buffer_limit_bytes":10}
        per_connection_buffer_limit_bytes: 1e3 => {"per_connection_buffer_limit_bytes":1000}
        per_connection_buffer_limit_bytes: "7" => {"per_connection_buffer_limit_bytes":7}
        ignore_health_on_host_removal: True => {"ignore_health_on_host_removal":true}
        lb_policy: 2 => {"lb_policy":"RING_HASH"}
        lbPolicy: RANDOM => {"lb_policy":"RANDOM"}
        metadata: {filter_metadata: {a: {on: on, n: 010, s: "1", t: true, l: [~, 0x10]}}} => {"metadata":{"filter_metadata":{"a":{"l":[null,16],"n":10,"on":"on","s":"1","t":true}}}}
    "#,
    ) {
        assert_eq!(round(CLUSTER, &text), written, "{text}");
    }
}

#[test]
fn complaints_have_a_place() {
    for [text, said] in rows(
        r#"
        name: a\nnam: b\n => 2:1: envoy.config.cluster.v3.Cluster has no field `nam`
        connect_timeout:\n  seconds: 5\n => 2:3: connect_timeout: expected a duration, such as 1.5s, found an object
        ignore_health_on_host_removal: yes => 1:32: ignore_health_on_host_removal: expected true or false, found `yes`
        name: a\nname: b\n => 2:1: the key `name` is there twice, first in line 1; remove one
        name: a\n---\nname: b\n => 2:1: a second document begins here; write one file for each
        name: [a\n => not YAML
        name: *a\n => not YAML
        name: !secret a\n => 1:15: the tag !secret is not supported; remove it
        ? [a]\n: b\n => 1:3: expected a key, found a list
        metadata: &m {filter_metadata: *m}\n => 1:32: this alias is inside the value that it refers to
        <<: {name: a}\n => 1:1: envoy.config.cluster.v3.Cluster has no field `<<`
        a: b: c\n => not YAML
        - a\n => 1:1: expected an object (envoy.config.cluster.v3.Cluster), found a list
        metadata: {filter_metadata: {a: {b: .inf}}} => not a JSON number; quote it
    "#,
    ) {
        let message = complaint(CLUSTER, &text);
        assert!(message.contains(&said), "{text:?}: {message}");
    }
    assert!(yaml("").unwrap().is_null());
    assert!(yaml("# only this\n").unwrap().is_null());
    assert_eq!(
        Tree::yaml(b"a: \xff", Bounds::FILE).unwrap_err().to_string(),
        "1:4: not UTF-8; save the text as UTF-8"
    );
    assert!(
        Tree::yaml(&[0x7F, b'E', b'L', b'F', 2, 1, 1, 0], Bounds::FILE).is_err(),
        "a program"
    );
}

#[test]
fn anchors_are_good_and_bombs_are_not() {
    let text = "name: a\noutlier_detection: {interval: &t 5s, base_ejection_time: *t}\n";
    assert_eq!(
        round(CLUSTER, text),
        "{\"name\":\"a\",\"outlier_detection\":{\"interval\":\"5s\",\"base_ejection_time\":\"5s\"}}"
    );
    let mut bomb = "a: &a [x,x,x,x,x,x,x,x,x,x]\n".to_owned();
    for (name, before) in ('b'..='z').zip('a'..='y') {
        let aliases = vec![format!("*{before}"); 10].join(",");
        bomb.push_str(&format!("{name}: &{name} [{aliases}]\n"));
    }
    let message = yaml(&bomb).unwrap_err().to_string();
    assert!(message.contains("the aliases make the text too large"), "{message}");
    let long = format!("a: &a {}\nb: [{}]\n", "x".repeat(1 << 20), vec!["*a"; 1000].join(","));
    let message = yaml(&long).unwrap_err().to_string();
    assert!(message.contains("the aliases make the text too large"), "{message}");
    let message = yaml(&"[".repeat(100_000)).unwrap_err().to_string();
    assert!(
        message.contains("nested deeper") || message.contains("not YAML"),
        "{message}"
    );
    let message = yaml(&"- ".repeat(10_000)).unwrap_err().to_string();
    assert!(
        message.contains("nested deeper") || message.contains("not YAML"),
        "{message}"
    );
    let mut deep = "a0: &a0 [[[[[[[[[[x]]]]]]]]]]\n".to_owned();
    for level in 1..20 {
        deep.push_str(&format!("a{level}: &a{level} [[[[[[[[[[*a{}]]]]]]]]]]\n", level - 1));
    }
    let message = yaml(&deep).unwrap_err().to_string();
    assert!(message.contains("nested deeper than 100 levels"), "{message}");
}

/// What is written for people reads as the same.
#[test]
fn written_yaml_reads_the_same() {
    let json = "{\"name\":\"yes\",\"list\":[\"a b\",\"\",\"x: y\",\"- z\",\"1\",\"1e3\",\"~\",\"null\",\"\u{e4}\\n\u{7f}\u{85}\",\"#\"],\
                \"map\":{\"1\":[[1,[]],{}],\"on\":null,\"*\":{\"k\":{\"l\":[{\"m\":1,\"n\":[\"o\"]}]}}},\"n\":-1.5e-7,\"t\":true,\
                \"envoy.filters.http.router\":\"/a/b-c_d\"}";
    let tree = crate::tree(json);
    let text = tree.to_yaml();
    let value = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
    let back = yaml(&text).unwrap_or_else(|fault| panic!("{text}: {fault}"));
    assert_eq!(value(&back.to_json()), value(json), "{text}");
    assert_eq!(value(&tree.to_json()), value(json));
    assert!(text.contains("\nlist:\n  - \"a b\"\n"), "{text}");
    assert!(text.contains("\nenvoy.filters.http.router: /a/b-c_d\n"), "{text}");
    let other: serde_json::Value = serde_saphyr::from_str(&text).unwrap();
    assert_eq!(other, value(json), "{text}");
}

/// J-05: YAML has a form of its own for keys of more than 1,024 characters, before a value of one line and of many.
#[test]
fn written_keys_may_be_long() {
    for length in [1021, 1022, 1023, 1024, 1025, 5000] {
        for (character, quotes) in [("k", 0), ("*", 2)] {
            let key = character.repeat(length);
            let json = format!("{{\"a\":[{{\"{key}\":{{\"b\":[1]}},\"c\":2}}],\"{key}\":\"d\"}}");
            let text = crate::tree(&json).to_yaml();
            let back = yaml(&text).unwrap_or_else(|fault| panic!("{text}: {fault}"));
            let expected: serde_json::Value = serde_json::from_str(&json).unwrap();
            assert_eq!(
                serde_json::from_str::<serde_json::Value>(&back.to_json()).unwrap(),
                expected,
                "{text}"
            );
            assert_eq!(text.contains("? "), length + quotes > 1024, "{text}");
        }
    }
}
