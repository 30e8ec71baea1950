// SPDX-License-Identifier: Apache-2.0
//! Descriptors: what is built in, what an operator adds, and which values are secrets.

use std::path::PathBuf;
use std::process::Command;

use distributary::json::{Bounds, Schemas, Secrets, Tree, Unknown};
use prost::Message;
use prost_reflect::prost_types::field_descriptor_proto::{Label, Type};
use prost_reflect::prost_types::{DescriptorProto, FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet};

use crate::{complaint, good};

/// A file that is deleted when the test ends.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str, content: &[u8]) -> Self {
        let path = std::env::temp_dir().join(format!("distributary-{}-{name}", std::process::id()));
        std::fs::write(&path, content).unwrap();
        Self(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn field(name: &str, number: i32, kind: Type, type_name: Option<&str>) -> FieldDescriptorProto {
    FieldDescriptorProto {
        name: Some(name.to_owned()),
        number: Some(number),
        label: Some(Label::Optional.into()),
        r#type: Some(kind.into()),
        type_name: type_name.map(str::to_owned),
        ..FieldDescriptorProto::default()
    }
}

/// An operator's own type that contains one of the API.
fn acme() -> FileDescriptorSet {
    let policy = DescriptorProto {
        name: Some("Policy".to_owned()),
        field: vec![
            field("name", 1, Type::String, None),
            field("max_size", 2, Type::Uint64, None),
            field("cluster", 3, Type::Message, Some(".envoy.config.cluster.v3.Cluster")),
        ],
        ..DescriptorProto::default()
    };
    let file = |name: &str| FileDescriptorProto {
        name: Some(name.to_owned()),
        syntax: Some("proto3".to_owned()),
        ..FileDescriptorProto::default()
    };
    FileDescriptorSet {
        file: vec![
            // Made with its imports, some of which are another version of what is built in.
            FileDescriptorProto {
                package: Some("envoy.config.cluster.v3".to_owned()),
                ..file("envoy/config/cluster/v3/cluster.proto")
            },
            FileDescriptorProto {
                package: Some("acme.v1".to_owned()),
                dependency: vec!["envoy/config/cluster/v3/cluster.proto".to_owned()],
                message_type: vec![policy],
                ..file("acme/v1/policy.proto")
            },
        ],
    }
}

/// J-04: an operator's own type is known once its descriptors are.
#[test]
fn operators_add_types() {
    let file = Scratch::new("acme.binpb", &acme().encode_to_vec());
    let schemas = Schemas::with_files(std::slice::from_ref(&file.0)).unwrap();
    assert!(schemas.knows("type.googleapis.com/acme.v1.Policy"));
    assert!(!Schemas::standard().knows("acme.v1.Policy"));
    let text =
        "{\"@type\":\"type.googleapis.com/acme.v1.Policy\",\"name\":\"p\",\"maxSize\":7,\"cluster\":{\"name\":\"c\"}}";
    let tree = Tree::json(text.as_bytes(), Bounds::FILE).unwrap();
    let any = schemas.resource(&tree, "", Unknown::Deny).unwrap().value;
    let json = schemas.resource_json(&any.type_url, &any.value, Secrets::Show).unwrap();
    assert_eq!(
        String::from_utf8(json.text).unwrap(),
        "{\"@type\":\"type.googleapis.com/acme.v1.Policy\",\"name\":\"p\",\"max_size\":\"7\",\"cluster\":{\"name\":\"c\"}}"
    );
    assert!(complaint("google.protobuf.Any", text).contains("`type.googleapis.com/acme.v1.Policy` is not known"));
}

#[test]
fn files_that_are_no_descriptors() {
    let missing = std::env::temp_dir().join("distributary-no-such-file.binpb");
    let said = Schemas::with_files(std::slice::from_ref(&missing))
        .unwrap_err()
        .to_string();
    assert!(said.starts_with(missing.to_str().unwrap()), "{said}");
    let mut double = acme();
    double.file[1].name = Some("acme/v1/other.proto".to_owned());
    double.file.extend(acme().file.into_iter().skip(1));
    for (name, content, part) in [
        ("empty.binpb", Vec::new(), "it has no files"),
        (
            "text.binpb",
            b"syntax = \"proto3\";".to_vec(),
            "not a FileDescriptorSet",
        ),
        ("double.binpb", double.encode_to_vec(), "acme.v1.Policy"),
    ] {
        let file = Scratch::new(name, &content);
        let said = Schemas::with_files(std::slice::from_ref(&file.0))
            .unwrap_err()
            .to_string();
        assert!(said.contains(part) && said.contains(name), "{said}");
    }
}

#[test]
fn secrets_are_redacted_where_the_api_says_so() {
    const SECRET: &str = "envoy.extensions.transport_sockets.tls.v3.Secret";
    let body = good(
        SECRET,
        "{\"name\":\"s\",\"tls_certificate\":{\"certificate_chain\":{\"filename\":\"/c\"},\"private_key\":{\"inline_string\":\"KEY\"},\
         \"password\":{\"inline_bytes\":\"S0VZ\"}}}",
    );
    let json = |secrets| {
        let json = Schemas::standard().decode(SECRET, &body, secrets).unwrap();
        String::from_utf8(json.text).unwrap()
    };
    assert!(json(Secrets::Show).contains("\"inline_string\":\"KEY\""));
    assert_eq!(
        json(Secrets::Redact),
        "{\"name\":\"s\",\"tls_certificate\":{\"certificate_chain\":{\"filename\":\"/c\"},\"private_key\":{\"inline_string\":\
         \"[redacted]\"},\"password\":{\"inline_bytes\":\"W3JlZGFjdGVkXQ==\"}}}"
    );
    let generic = good(SECRET, "{\"generic_secret\":{\"secret\":{\"inline_string\":\"KEY\"}}}");
    let shown = Schemas::standard().decode(SECRET, &generic, Secrets::Redact).unwrap();
    assert!(!String::from_utf8(shown.text).unwrap().contains("KEY"));
}

/// What is redacted on the wire says the same as what is redacted as JSON; what is no secret stays as it is.
#[test]
fn secrets_are_redacted_on_the_wire() {
    const SECRET: &str = "envoy.extensions.transport_sockets.tls.v3.Secret";
    const LISTENER: &str = "envoy.config.listener.v3.Listener";
    let schemas = Schemas::standard();
    let private = "{\"inline_bytes\":\"S0VZ\"}";
    let tls = format!(
        "{{\"@type\":\"type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext\",\"common_tls_context\":\
         {{\"tls_certificates\":[{{\"certificate_chain\":{{\"filename\":\"/c\"}},\"private_key\":{private}}}]}},\"require_sni\":true}}"
    );
    let listener = format!(
        "{{\"name\":\"l\",\"metadata\":{{\"filter_metadata\":{{\"a\":{{\"b\":[1,\"c\"]}}}}}},\"filter_chains\":[{{\"transport_socket\":\
         {{\"name\":\"t\",\"typed_config\":{tls}}}}}]}}"
    );
    for (name, text) in [
        (
            SECRET,
            &*format!(
                "{{\"name\":\"s\",\"tls_certificate\":{{\"private_key\":{private},\"password\":{{\"filename\":\"KEY\"}}}}}}"
            ),
        ),
        (
            SECRET,
            "{\"name\":\"s\",\"generic_secret\":{\"secrets\":{\"a\":{\"inline_string\":\"KEY\"}}}}",
        ),
        (LISTENER, &listener),
    ] {
        let body = good(name, text);
        let redacted = schemas.redacted(name, &body).unwrap();
        let json = |body: &[u8], secrets| String::from_utf8(schemas.decode(name, body, secrets).unwrap().text).unwrap();
        let shown = json(&redacted, Secrets::Show);
        assert!(!shown.contains("KEY") && !shown.contains("S0VZ"), "{shown}");
        assert_eq!(shown, json(&body, Secrets::Redact), "{text}");
    }
    // Unknown fields stay; what cannot be read is no answer, and a value of an unknown type is left out.
    let redacted = |body: &[u8]| {
        schemas
            .redacted(LISTENER, &body.to_vec().into())
            .map(|redacted| redacted.to_vec())
    };
    let unknown = [&b"\x0a\x01l"[..], &[0xfa, 0x7f, 1, b'u', 0xf0, 0x7f, 5]].concat();
    assert_eq!(redacted(&unknown), Some(unknown));
    for bad in [&[0x0a, 1, 0xff][..], &[0x08, 1], &[0x0a, 9, b'l'], &[0x12, 1, 0xff]] {
        assert_eq!(redacted(bad), None, "{bad:?}");
    }
    let any = "type.googleapis.com/google.protobuf.Any";
    let nested = [&[0x0a, 3][..], b"x/y", &[0x12, 1, b'z']].concat();
    assert_eq!(
        schemas.redacted(any, &nested.into()).unwrap(),
        [&[0x0a, 3][..], b"x/y", &[0x12, 0]].concat()
    );
}

/// What the unpacked descriptors take goes back to the system when they are let go of, also with the allocator of glibc.
#[test]
fn the_memory_of_descriptors_goes_back() {
    let alone = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "--ignored", "descriptors::in_a_process_of_its_own"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&alone.stdout);
    assert!(alone.status.success() && said.contains("1 passed"), "{said}");
}

#[test]
#[ignore = "is run by `the_memory_of_descriptors_goes_back`, in a process of its own: other tests need them all the time"]
fn in_a_process_of_its_own() {
    let before = resident();
    assert!(Schemas::standard().knows("envoy.config.cluster.v3.Cluster"));
    let unpacked = resident() - before;
    Schemas::pack();
    let kept = resident().saturating_sub(before);
    assert!(
        unpacked > 8 << 10 && kept < unpacked / 4,
        "{kept} of {unpacked} KiB are kept"
    );
}

/// The memory that the process has for itself, in KiB.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}
