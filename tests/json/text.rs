// SPDX-License-Identifier: Apache-2.0
//! The text format of protobuf.

use distributary::json::Schemas;

use crate::decode;

const CLUSTER: &str = "envoy.config.cluster.v3.Cluster";

fn complaint(text: &[u8]) -> String {
    Schemas::standard().encode_text(CLUSTER, text).unwrap_err().to_string()
}

/// J-05: text becomes the same bytes as JSON does.
#[test]
fn text_means_what_json_means() {
    let text = b"# a cluster\nname: 'a'\nconnect_timeout { seconds: 1 nanos: 500000000 }\nlb_policy: MAGLEV\n\
        metadata { filter_metadata { key: 'b' value { fields { key: 'x' value { bool_value: true } } } }\n\
        filter_metadata { key: 'a' value { } } }\n\
        typed_extension_protocol_options { key: 'k' value { [type.googleapis.com/google.protobuf.Duration] { seconds: 2 } } }\n";
    let body = Schemas::standard()
        .encode_text(CLUSTER, text)
        .unwrap_or_else(|fault| panic!("{fault}"));
    let json = decode(CLUSTER, &body);
    assert_eq!(
        json,
        "{\"name\":\"a\",\"connect_timeout\":\"1.500s\",\"lb_policy\":\"MAGLEV\",\"metadata\":{\"filter_metadata\":{\"a\":{},\
         \"b\":{\"x\":true}}},\"typed_extension_protocol_options\":{\"k\":{\"@type\":\"type.googleapis.com/google.protobuf.Duration\",\
         \"value\":\"2s\"}}}"
    );
    assert_eq!(crate::good(CLUSTER, &json), body);
}

#[test]
fn bad_text_has_a_place() {
    for (text, said) in [
        (&b"name: 'a'\nnam: 'b'\n"[..], "2:1: "),
        (b"name: 5", "1:7: "),
        (b"name: 'a", "1:9: expected string terminator"),
        (b"a: \xff", "1:4: not UTF-8"),
    ] {
        let message = complaint(text);
        assert!(message.starts_with(said), "{message}");
    }
    for open in ["metadata {", "metadata <", "a: ["] {
        let message = complaint(open.repeat(100_000).as_bytes());
        assert!(message.contains("nested deeper than 100 levels"), "{message}");
    }
}
