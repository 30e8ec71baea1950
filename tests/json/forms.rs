// SPDX-License-Identifier: Apache-2.0
//! The forms of single values and of the messages that have their own.

use prost::encoding;

use crate::{complaint, decode, encode, good, oracle, round, rows};

const ANY: &str = "google.protobuf.Any";

/// J-02: the accepted forms, and the form that is written.
#[test]
fn well_known_types() {
    for [name, json, written] in rows(
        r#"
        Duration => "1.5s" => "1.500s"
        Duration => "-0.000000001s" => "-0.000000001s"
        Duration => "3s" => "3s"
        Duration => "0.000250s" => "0.000250s"
        Duration => "315576000000s" => "315576000000s"
        Timestamp => "1970-01-01T00:00:00Z" => "1970-01-01T00:00:00Z"
        Timestamp => "2000-02-29T23:59:59.5+01:30" => "2000-02-29T22:29:59.500Z"
        Timestamp => "0001-01-01T00:00:00Z" => "0001-01-01T00:00:00Z"
        Timestamp => "9999-12-31T23:59:59.999999999Z" => "9999-12-31T23:59:59.999999999Z"
        FieldMask => "user.displayName,photo" => "user.displayName,photo"
        FieldMask => "" => ""
        Struct => {"b":null,"a":{}} => {"a":{},"b":null}
        Value => null => null
        Value => 1e3 => 1000
        Value => [1.50,"1",false,[],{}] => [1.5,"1",false,[],{}]
        ListValue => [null] => [null]
        BoolValue => true => true
        BoolValue => false => false
        Int32Value => "-7" => -7
        UInt32Value => 4294967295 => 4294967295
        Int64Value => -9223372036854775808 => "-9223372036854775808"
        UInt64Value => "18446744073709551615" => "18446744073709551615"
        UInt64Value => 1e3 => "1000"
        Int32Value => 5.0 => 5
        FloatValue => 0.1 => 0.1
        FloatValue => "NaN" => "NaN"
        DoubleValue => "Infinity" => "Infinity"
        DoubleValue => "-Infinity" => "-Infinity"
        DoubleValue => -0.0 => -0
        DoubleValue => 1.7976931348623157e308 => 1.7976931348623157e308
        StringValue => "\u00e4\ud83d\ude00" => "ä😀"
        BytesValue => "-_8" => "+/8="
        BytesValue => "+/8=" => "+/8="
        BytesValue => "AQ" => "AQ=="
        Empty => {} => {}
        Any => {} => {}
    "#,
    ) {
        let name = format!("google.protobuf.{name}");
        // Numbers may be written differently; their values are compared.
        let (ours, theirs): (serde_json::Value, serde_json::Value) = (
            serde_json::from_str(&round(&name, &json)).unwrap(),
            serde_json::from_str(&written).unwrap(),
        );
        if ours.is_number() {
            assert_eq!(ours.as_f64(), theirs.as_f64(), "{name} {json}");
        } else {
            assert_eq!(round(&name, &json), written, "{name} {json}");
        }
    }
}

/// J-02: values that these types reject.
#[test]
fn values_that_are_none() {
    for [name, json, said] in rows(
        r#"
        Duration => "1.5" => 1:1: `1.5` is not a duration; write seconds with a final s, such as 1.5s
        Duration => "1.0000000001s" => is not a duration
        Duration => "1.s" => is not a duration
        Duration => "+1s" => is not a duration
        Duration => "315576000001s" => is out of range
        Duration => 5 => expected a duration, such as 1.5s, found the number 5
        Timestamp => "2026-02-29T00:00:00Z" => is not a time; write it as 2026-01-02T03:04:05.6Z
        Timestamp => "2026-01-01 00:00:00Z" => is not a time
        Timestamp => "2026-01-01T24:00:00Z" => is not a time
        Timestamp => "0000-01-01T00:00:00Z" => is not a time
        Timestamp => "2026-01-01T00:00:00" => is not a time
        FieldMask => "a_b" => write it in lowerCamelCase
        Int32Value => 2147483648 => 2147483648 is out of range for this field
        UInt32Value => -1 => -1 is out of range
        UInt64Value => 18446744073709551616 => out of range
        Int32Value => 1.5 => expected a whole number, found the number 1.5
        Int32Value => "" => expected a whole number
        Int32Value => true => expected a whole number, found true
        FloatValue => 3.5e38 => out of range for 32 bits
        DoubleValue => 1e400 => expected a number
        DoubleValue => "nan" => expected a number
        BoolValue => "true" => expected true or false, found the string "true"
        BoolValue => 1 => expected true or false
        StringValue => 5 => expected a string, found the number 5
        BytesValue => "*" => expected base64
        Struct => [] => expected an object, found a list
        ListValue => {} => expected a list, found an object
    "#,
    ) {
        let message = complaint(&format!("google.protobuf.{name}"), &json);
        assert!(message.contains(&said), "{name} {json}: {message}");
    }
}

/// J-01: both spellings are read, the proto file's is written; J-02: enums by name and by number.
#[test]
fn spellings_and_enums() {
    const CLUSTER: &str = "envoy.config.cluster.v3.Cluster";
    let written = "{\"name\":\"a\",\"type\":\"EDS\",\"eds_cluster_config\":{\"service_name\":\"s\"},\"connect_timeout\":\"1s\",\
                   \"lb_policy\":\"MAGLEV\"}";
    for json in [
        written,
        "{\"connectTimeout\":\"1s\",\"lbPolicy\":5,\"edsClusterConfig\":{\"serviceName\":\"s\"},\"type\":3,\"name\":\"a\"}",
        "{\"lb_policy\":5.0,\"connectTimeout\":\"1.0s\",\"name\":\"a\",\"altStatName\":null,\"eds_cluster_config\":\
         {\"serviceName\":\"s\"},\"type\":3}",
    ] {
        assert_eq!(round(CLUSTER, json), written);
    }
    assert_eq!(round(CLUSTER, "{\"lb_policy\":77}"), "{\"lb_policy\":77}");
    assert_eq!(round(CLUSTER, "{\"lb_policy\":\"ROUND_ROBIN\",\"name\":\"\"}"), "{}");
    assert_eq!(
        complaint(CLUSTER, "{\n \"lb_policy\": \"RR\"}"),
        "2:15: lb_policy: expected one of ROUND_ROBIN, LEAST_REQUEST, RING_HASH, RANDOM, MAGLEV, CLUSTER_PROVIDED, \
         LOAD_BALANCING_POLICY_CONFIG, found the string \"RR\""
    );
}

/// Both implementations write these bytes like this.
fn assert_written(name: &str, body: &[u8], written: &str) {
    assert_eq!(decode(name, body), written, "{name}");
    let theirs = oracle::to_json(&oracle::from_bytes(name, body));
    assert_eq!(theirs.to_string(), written, "{name}");
}

/// J-02: a field of 32 bits takes the lower 32 bits of a varint. If these are 0, the field has its default and is not written.
#[test]
fn varints_wider_than_the_field() {
    for (name, field, written) in [
        ("envoy.config.listener.v3.Listener", 8, "{}"),
        ("envoy.type.v3.FractionalPercent", 1, "{}"),
        ("envoy.type.v3.Int32Range", 1, "{}"),
        ("envoy.type.v3.Int64Range", 1, "{\"start\":\"279172874240\"}"),
        // A field with presence has the value 0.
        ("envoy.config.core.v3.SocketAddress", 3, "{\"port_value\":0}"),
    ] {
        let mut body = Vec::new();
        encoding::uint64::encode(field, &(0x41 << 32), &mut body);
        assert_written(name, &body, written);
    }
}

/// J-02: the occurrences of one message are its parts, also in a map, in a structure and in a value.
#[test]
fn messages_in_parts() {
    fn field(number: u32, content: &[u8]) -> Vec<u8> {
        let mut body = Vec::new();
        encoding::bytes::encode(number, &content.to_vec(), &mut body);
        body
    }
    let text = |text: &str| field(3, text.as_bytes());
    let entry = |key: &str, parts: &[&[u8]]| {
        let parts: Vec<_> = parts.iter().map(|part| field(2, part)).collect();
        field(1, &[field(1, key.as_bytes()), parts.concat()].concat())
    };
    // The second part of the value is empty.
    let structure = entry("a", &[&text("x"), &[]]);
    let two = [field(5, &structure), field(5, &entry("b", &[&text("y")]))].concat();
    let list = [field(6, &field(1, &text("x"))), field(6, &field(1, &text("y")))].concat();
    // A member that follows replaces the one before.
    let changed = [field(5, &structure), text("z"), field(5, &entry("b", &[&text("y")]))].concat();
    let metadata = entry("m", &[&structure, &entry("b", &[&text("y")])]);
    for (name, body, written) in [
        ("google.protobuf.Struct", structure, "{\"a\":\"x\"}"),
        ("google.protobuf.Value", two, "{\"a\":\"x\",\"b\":\"y\"}"),
        ("google.protobuf.Value", list, "[\"x\",\"y\"]"),
        ("google.protobuf.Value", changed, "{\"b\":\"y\"}"),
        (
            "envoy.config.core.v3.Metadata",
            metadata,
            "{\"filter_metadata\":{\"m\":{\"a\":\"x\",\"b\":\"y\"}}}",
        ),
    ] {
        assert_written(name, &body, written);
    }
}

/// J-03: an `Any` in an `Any` in an `Any`, each with fields of its own, and inside it messages with a form of their own.
#[test]
fn any_in_any_in_any() {
    let inner = "{\"@type\":\"type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig\",\"name\":\"3\",\"typed_config\":\
                 {\"@type\":\"type.googleapis.com/google.protobuf.Duration\",\"value\":\"3s\"}}";
    let middle = format!(
        "{{\"@type\":\"type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig\",\"name\":\"2\",\"typed_config\":{inner}}}"
    );
    let outer = format!(
        "{{\"@type\":\"type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig\",\"name\":\"1\",\"typed_config\":{middle}}}"
    );
    assert_eq!(round(ANY, &outer), outer);
    let wrapped = format!("{{\"@type\":\"type.googleapis.com/google.protobuf.Any\",\"value\":{outer}}}");
    assert_eq!(round(ANY, &wrapped), wrapped);
    for [json, written] in rows(
        r#"
        {"@type":"x/google.protobuf.Empty","value":{}} => {"@type":"x/google.protobuf.Empty"}
        {"@type":"x/google.protobuf.Empty"} => {"@type":"x/google.protobuf.Empty"}
        {"value":{"a":1},"@type":"x/google.protobuf.Struct"} => {"@type":"x/google.protobuf.Struct","value":{"a":1}}
        {"value":"5","@type":"x/google.protobuf.Int64Value"} => {"@type":"x/google.protobuf.Int64Value","value":"5"}
    "#,
    ) {
        assert_eq!(round(ANY, &json), written);
    }
}

/// J-03, J-04: the error of an `Any` whose type is missing, malformed or unknown names it, however deep it is.
#[test]
fn an_any_of_no_type() {
    for [json, said] in rows(
        r#"
        {"a":1} => 1:1: `@type` is missing
        {"@type":"Foo"} => 1:10: `Foo` is not a type; write type.googleapis.com/Foo
        {"@type":5} => 1:10: expected a type, found the number 5
        {"@type":"a/"} => 1:10: the type `a/` is not known
        {"@type":"type.googleapis.com/acme.v1.Policy"} => 1:10: the type `type.googleapis.com/acme.v1.Policy` is not known; add its descriptors to `descriptors` in the configuration
        {"@type":"x/google.protobuf.Any",\n"value":{"@type":"x/acme.v1.Policy"}} => 2:18: value: the type `x/acme.v1.Policy` is not known
        {"@type":"x/google.protobuf.Duration","value":"1s","other":1} => 1:52: beside `@type`, google.protobuf.Duration has only a `value`
    "#,
    ) {
        let message = complaint(ANY, &json);
        assert!(message.starts_with(&said), "{json}: {message}");
    }
    let foreign = good("google.protobuf.ListValue", "[]");
    assert!(foreign.is_empty());
    let body = [&[0x0A, 8][..], b"x/acme.P", &[0x12, 0]].concat();
    let fault = json::Schemas::standard()
        .decode(ANY, &body, json::Secrets::Show)
        .unwrap_err();
    assert!(
        fault.to_string().starts_with("the type `x/acme.P` is not known"),
        "{fault}"
    );
}

/// J-05: equal content becomes equal bytes, in whatever order it is written.
#[test]
fn order_in_the_text_changes_nothing() {
    const NAME: &str = "envoy.config.core.v3.Metadata";
    let one = good(NAME, "{\"filter_metadata\":{\"b\":{\"x\":1,\"y\":2},\"a\":{}}}");
    let other = good(NAME, "{\"filterMetadata\":{\"a\":{},\"b\":{\"y\":2,\"x\":1}}}");
    assert_eq!(one, other);
    assert_eq!(
        decode(NAME, &one),
        "{\"filter_metadata\":{\"a\":{},\"b\":{\"x\":1,\"y\":2}}}"
    );
    let any = |fields: &str| {
        let text = format!("{{\"@type\":\"x/{NAME}\",\"filter_metadata\":{{{fields}}}}}");
        encode(ANY, &text).unwrap()
    };
    assert_eq!(any("\"a\":{},\"b\":{}"), any("\"b\":{},\"a\":{}"));
}
