// SPDX-License-Identifier: Apache-2.0
//! Texts that are broken or hostile.

use distributary::json::{Bounds, Schemas, Secrets, Tree, Unknown};

use crate::{complaint, rows};

const ROUTE: &str = "envoy.config.route.v3.RouteConfiguration";

fn json_fault(text: &[u8]) -> String {
    Tree::json(text, Bounds::FILE).unwrap_err().to_string()
}

/// J-05: strict reading reports line, column, path, and what was expected.
#[test]
fn complaints_have_a_place_and_a_path() {
    for [json, said] in rows(
        r#"
        {\n  "nam": "x"\n} => 2:3: envoy.config.route.v3.RouteConfiguration has no field `nam`
        {"virtual_hosts": [{"name": "a"}, {\n"domains": "*"}]} => 2:12: virtual_hosts[1].domains: expected a list, found the string "*"
        {"virtual_hosts": [{"typed_per_filter_config": {"envoy.cors":\n {"@type": "x/google.protobuf.Struct", "value": 1}}}]} => 2:49: virtual_hosts[0].typed_per_filter_config["envoy.cors"].value: expected an object, found the number 1
        {"virtual_hosts": [{"routes": [{"match": {"prefix": "/", "path": "/"}}]}]} => 1:58: virtual_hosts[0].routes[0].match: `path` and `prefix` exclude each other; remove one
        {"virtual_hosts": [], "virtualHosts": []} => 1:23: `virtualHosts` and `virtual_hosts` are the same field; remove one
        {"virtual_hosts": [null]} => 1:20: virtual_hosts[0]: null is not allowed in a list; remove it
        {"validate_clusters": {}} => 1:23: validate_clusters: expected true or false, found an object
        [] => 1:1: expected an object (envoy.config.route.v3.RouteConfiguration), found a list
        "ä😀" x => 1:6: text after the end of the value; remove it
    "#,
    ) {
        assert_eq!(complaint(ROUTE, &json), said);
    }
}

#[test]
fn text_that_is_no_json() {
    for (text, said) in [
        (&b""[..], "1:1: the text ends where a value was expected"),
        (b"{", "1:2: the text ends where a key in double quotes was expected"),
        (b"{\"a\"}", "1:5: expected a colon, found '}'"),
        (b"{\"a\":1,}", "1:8: expected a key in double quotes, found '}'"),
        (b"[1,]", "1:4: expected a value, found ']'"),
        (b"[1 2]", "1:4: expected a comma or the end of the list, found '2'"),
        (b"{'a':1}", "1:2: expected a key in double quotes, found '\\''"),
        (
            b"010",
            "1:2: a JSON number has no leading zero; remove it, or quote the text",
        ),
        (b"-", "1:2: the text ends where a digit was expected"),
        (b"1.", "1:3: the text ends where a digit was expected"),
        (b"1e+", "1:4: the text ends where a digit was expected"),
        (b"+1", "1:1: expected a value, found '+'"),
        (b"nul", "1:1: expected a value, found 'n'"),
        (b"NaN", "1:1: expected a value, found 'N'"),
        (b"\"a", "1:1: this string has no end"),
        (
            b"\"a\nb\"",
            "1:3: expected an escaped control character in a string, found '\\n'",
        ),
        (b"\"\\x\"", "1:1: this string has an escape that is not valid in JSON"),
        (
            b"\"\\ud800\"",
            "1:1: this string has an escape that is not valid in JSON",
        ),
        (
            b"\"\\\xc3\xa4\"",
            "1:1: this string has an escape that is not valid in JSON",
        ),
        (b"1 // one", "1:3: text after the end of the value; remove it"),
        (b"\n \xff", "2:2: not UTF-8; save the text as UTF-8"),
        (
            b"{\"a\":1,\n\"b\":{\"c\":1, \"c\":2}}",
            "2:13: the key `c` is there twice, first in line 2; remove one",
        ),
        (
            b"{\"a\":1,\"\\u0061\":2}",
            "1:8: the key `a` is there twice, first in line 1; remove one",
        ),
    ] {
        assert_eq!(json_fault(text), said, "{}", String::from_utf8_lossy(text));
    }
    assert!(Tree::json(b"\xEF\xBB\xBF 1", Bounds::FILE).is_ok(), "a byte order mark");
}

#[test]
fn depth_and_number_are_bounded() {
    let deep = "[".repeat(100_000);
    assert!(json_fault(deep.as_bytes()).contains("nested deeper than 100 levels"));
    let deep = "{\"a\":".repeat(100_000);
    assert!(json_fault(deep.as_bytes()).contains("nested deeper than 100 levels"));
    let few = Bounds { values: 10 };
    assert!(Tree::json(b"[1,2,3,4,5,6,7,8,9]", few).is_ok());
    let fault = Tree::json(b"[1,2,3,4,5,6,7,8,9,10]", few).unwrap_err();
    assert_eq!(fault.to_string(), "1:20: more than 10 values in one text; split it");
    // A structure has two messages for each level.
    let nested = |levels: usize| format!("{}1{}", "[".repeat(levels), "]".repeat(levels));
    let tree = Tree::json(nested(40).as_bytes(), Bounds::FILE).unwrap();
    let schemas = Schemas::standard();
    let body = schemas
        .encode("google.protobuf.Value", &tree, "", Unknown::Deny)
        .unwrap();
    assert_eq!(
        schemas
            .decode("google.protobuf.Value", &body.value, Secrets::Show)
            .unwrap()
            .text,
        nested(40).into_bytes()
    );
    let tree = Tree::json(nested(60).as_bytes(), Bounds::FILE).unwrap();
    let fault = schemas
        .encode("google.protobuf.Value", &tree, "", Unknown::Deny)
        .unwrap_err();
    assert!(fault.to_string().contains("nested deeper than 100 levels"), "{fault}");
}

/// A message in bytes can nest without end, too.
#[test]
fn deep_messages_are_no_json() {
    // A predicate in a predicate: `not_matcher` is field 4, `not_match` field 3.
    for (name, key) in [
        ("xds.type.matcher.v3.Matcher.MatcherList.Predicate", 0x22),
        ("envoy.config.common.matcher.v3.MatchPredicate", 0x1A),
    ] {
        let mut body = Vec::new();
        for _ in 0..5000 {
            let mut outer = vec![key];
            prost::encoding::encode_varint(body.len() as u64, &mut outer);
            outer.extend_from_slice(&body);
            body = outer;
        }
        let fault = Schemas::standard().decode(name, &body, Secrets::Show).unwrap_err();
        assert!(
            fault.message.contains("nested deeper than 100 levels"),
            "{name}: {fault}"
        );
    }
    let mut body = Vec::new();
    for _ in 0..3000 {
        let mut list = vec![0x0A];
        prost::encoding::encode_varint(body.len() as u64, &mut list);
        list.extend_from_slice(&body);
        let mut value = vec![0x32];
        prost::encoding::encode_varint(list.len() as u64, &mut value);
        value.extend_from_slice(&list);
        body = value;
    }
    let fault = Schemas::standard()
        .decode("google.protobuf.Value", &body, Secrets::Show)
        .unwrap_err();
    assert!(fault.message.contains("nested deeper than 100"), "{fault}");
}

/// J-05: an unknown field is a fault, or a warning, or ignored.
#[test]
fn unknown_fields_as_the_reader_wants() {
    let tree =
        crate::tree("{\"name\":\"r\",\"colour\":1,\"virtual_hosts\":[{\"require_tls\":\"SOME\",\"size\":{\"x\":[]}}]}");
    let read = |unknown| Schemas::standard().encode(ROUTE, &tree, "resources[2]", unknown);
    assert_eq!(
        read(Unknown::Deny).unwrap_err().to_string(),
        "1:13: resources[2]: envoy.config.route.v3.RouteConfiguration has no field `colour`"
    );
    let warned = read(Unknown::Warn).unwrap();
    let warnings: Vec<String> = warned.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(
        warnings,
        [
            "1:13: resources[2]: envoy.config.route.v3.RouteConfiguration has no field `colour`",
            "1:63: resources[2].virtual_hosts[0]: envoy.config.route.v3.VirtualHost has no field `size`",
            "1:56: resources[2].virtual_hosts[0].require_tls: expected one of NONE, EXTERNAL_ONLY, ALL, found the string \"SOME\"",
        ]
    );
    let ignored = read(Unknown::Ignore).unwrap();
    assert!(ignored.warnings.is_empty());
    assert_eq!(ignored.value, warned.value);
    assert_eq!(
        crate::decode(ROUTE, &ignored.value),
        "{\"name\":\"r\",\"virtual_hosts\":[{}]}"
    );
}

/// Bytes that are no message, and invalid texts in them, are faults and not panics.
#[test]
fn bytes_that_are_no_message() {
    let schemas = Schemas::standard();
    for body in [&[0x0A][..], &[0x0A, 5, 1], &[0x08], &[0xFF; 20], &[0x00, 0x01], &[0x0B]] {
        let fault = schemas.decode(ROUTE, body, Secrets::Show).unwrap_err();
        assert_eq!(fault.to_string(), "not a valid protobuf message");
    }
    let fault = schemas.decode(ROUTE, &[0x0A, 1, 0xFF], Secrets::Show).unwrap_err();
    assert_eq!(fault.to_string(), "name: this string is not UTF-8");
    let mask = "google.protobuf.FieldMask";
    for (body, said) in [
        (&[0x0A, 0][..], "an empty path cannot be written"),
        (
            &[0x0A, 2, b'a', b'B'],
            "the path `aB` cannot be written in lowerCamelCase",
        ),
        (
            &[0x0A, 2, b'a', b'_'],
            "the path `a_` cannot be written in lowerCamelCase",
        ),
        (
            &[0x0A, 3, b'a', b'_', b'1'],
            "the path `a_1` cannot be written in lowerCamelCase",
        ),
        (
            &[0x0A, 3, b'a', b',', b'b'],
            "the path `a,b` cannot be written in lowerCamelCase",
        ),
    ] {
        let fault = schemas.decode(mask, body, Secrets::Show).unwrap_err();
        assert_eq!(fault.to_string(), said);
    }
    let no_url = [&[0x0A, 21][..], b"google.protobuf.Empty"].concat();
    let fault = schemas
        .decode("google.protobuf.Any", &no_url, Secrets::Show)
        .unwrap_err();
    assert!(
        fault.to_string().contains("`google.protobuf.Empty` is not known"),
        "{fault}"
    );
    // A name as a number, and an unknown field.
    let json = schemas
        .decode(ROUTE, &[0x08, 1, 0xC2, 0x3E, 1, 0x61], Secrets::Show)
        .unwrap();
    assert_eq!((json.text.as_slice(), json.unknown_fields), (&b"{}"[..], 2));
}
