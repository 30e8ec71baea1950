// SPDX-License-Identifier: Apache-2.0
//! What one file may contain, in every form.

use distributary::json::Unknown;
use distributary::proto::envoy::service::discovery::v3::{DiscoveryResponse, Resource};
use distributary::proto::google::protobuf::Any;
use distributary::upstream::FileFormat;
use prost::Message;

use super::*;

const LISTENER: &str = "type.googleapis.com/envoy.config.listener.v3.Listener";

/// I-01: a response, a list, one resource, in YAML and JSON.
#[test]
fn forms_of_people() {
    let yaml = |text: &str| parse(text, FileFormat::Yaml).unwrap();
    assert_eq!(yaml(&clusters(&["a", "b"])), ["cds a", "cds b"]);
    let list = format!(
        "- '@type': {LISTENER}\n  name: l\n- '@type': {}\n  cluster_name: e\n",
        eds().url()
    );
    assert_eq!(yaml(&list), ["lds l", "eds e"]);
    assert_eq!(yaml(&format!("'@type': {LISTENER}\nname: l\n")), ["lds l"]);
    let json =
        format!(r#"{{"versionInfo":"1","typeUrl":"{LISTENER}","resources":[{{"@type":"{LISTENER}","name":"l"}}]}}"#);
    assert_eq!(parse(&json, FileFormat::Json).unwrap(), ["lds l"]);
    assert_eq!(parse(&json, FileFormat::Yaml).unwrap(), ["lds l"]);
    let spoken = format!(
        "'@type': type.googleapis.com/envoy.service.discovery.v3.DiscoveryResponse\n{}",
        clusters(&["a"])
    );
    assert_eq!(yaml(&spoken), ["cds a"]);
}

/// I-01: binary and text, a response or a resource in its wrapper.
#[test]
fn forms_of_machines() {
    let any = Any {
        type_url: LISTENER.to_owned(),
        value: vec![0x0a, 1, b'l'].into(),
    };
    let response = DiscoveryResponse {
        version_info: "7".to_owned(),
        resources: vec![any.clone()],
        ..DiscoveryResponse::default()
    };
    let binary = |bytes: &[u8]| parse_with(bytes, FileFormat::Binary, &dictionary());
    assert_eq!(binary(&response.encode_to_vec()).unwrap(), ["lds l"]);
    let wrapper = Resource {
        name: "other".to_owned(),
        resource: Some(any),
        ..Resource::default()
    };
    assert_eq!(binary(&wrapper.encode_to_vec()).unwrap(), ["lds other"]);
    let text = format!("resources {{ [{LISTENER}] {{ name: \"l\" }} }}");
    assert_eq!(parse(&text, FileFormat::Text).unwrap(), ["lds l"]);
    let text = format!("name: \"n\" resource {{ [{LISTENER}] {{ name: \"l\" }} }}");
    assert_eq!(parse(&text, FileFormat::Text).unwrap(), ["lds n"]);
}

/// I-01: the inline entries of a collection are used, and the others reported.
#[test]
fn collections() {
    let entry =
        |name: &str| format!("    - inline_entry: {{ name: x, resource: {{ '@type': {LISTENER}, name: {name} }} }}\n");
    let text = format!(
        "resource:\n    '@type': type.googleapis.com/envoy.config.listener.v3.ListenerCollection\n    entries:\n{}{}    - locator: {{ id: y }}\n",
        entry("a"),
        entry("b")
    );
    let parsed = ParsedFile::parse(text.as_bytes(), FileFormat::Yaml, &dictionary(), now()).unwrap();
    let names: Vec<_> = parsed
        .resources
        .iter()
        .map(|one| one.resource.name().as_str())
        .collect();
    assert_eq!(names, ["a", "b"]);
    assert_eq!(parsed.warnings.len(), 1);
    assert!(
        parsed.warnings[0].to_string().contains("entries[2]"),
        "{:?}",
        parsed.warnings
    );
}

/// F-04: `xdstp:` names have one canonical text; a type without a name field has the name of its wrapper (A-10).
#[test]
fn names() {
    let text = "- '@type': type.googleapis.com/envoy.service.discovery.v3.Resource\n  name: xdstp://a/envoy.config.listener.v3.Listener/l?b=2&a=1\n  resource: { '@type': type.googleapis.com/envoy.config.listener.v3.Listener, name: l }\n";
    assert_eq!(
        parse(text, FileFormat::Yaml).unwrap(),
        ["lds xdstp://a/envoy.config.listener.v3.Listener/l?a=1&b=2"]
    );
    let host = "'@type': type.googleapis.com/envoy.config.route.v3.VirtualHost\nname: h\ndomains: ['*']\n";
    assert!(
        parse(host, FileFormat::Yaml)
            .unwrap_err()
            .message
            .contains("has no name")
    );
}

/// F-16: there are no resources for some clients only.
#[test]
fn whom_a_resource_is_for() {
    let wrapper = |full: &str| {
        format!(
            "- '@type': type.googleapis.com/envoy.service.discovery.v3.Resource\n  resource_name: {{ {full} }}\n  resource: \
             {{ '@type': {LISTENER}, name: x }}\n"
        )
    };
    assert_eq!(parse(&wrapper("name: l"), FileFormat::Yaml).unwrap(), ["lds l"]);
    let some = "name: l, dynamic_parameter_constraints: { constraint: { key: env, value: prod } }";
    let fault = parse(&wrapper(some), FileFormat::Yaml).unwrap_err().message;
    assert!(
        fault.contains("has dynamic_parameter_constraints: the relay has no resources for some clients only"),
        "{fault}"
    );
}

/// I-05: an error has its place, its field and what was expected.
#[test]
fn faults_have_places() {
    let cluster = "type.googleapis.com/envoy.config.cluster.v3.Cluster";
    #[rustfmt::skip]
    let rows = [
        ("resources:\n- name: a\n", "2:3: resources[0]"),
        (&format!("resources:\n- '@type': {cluster}\n  name: a\n  nme: b\n") as &str,
            "4:3: resources[0]: envoy.config.cluster.v3.Cluster has no field `nme`"),
        (&format!("resources:\n- '@type': {cluster}\n  name: a\n  connect_timeout: soon\n"),
            "4:20: resources[0].connect_timeout"),
        (&format!("- '@type': {cluster}\n  name: a\n  name: b\n"), "3:3: the key `name` is there twice"),
        ("- '@type': acme.Unknown\n  name: a\n", "acme.Unknown"),
        (&format!("type_url: {LISTENER}\nresources:\n- '@type': {cluster}\n  name: a\n"), "3:3: resources[0]: is a"),
        ("", "is empty"),
        ("# nothing\n", "is empty"),
        ("{}", "is empty"),
        ("resourcs: []\n", "has no field `resourcs`"),
        ("a: [b", "not YAML"),
        ("just words", "expected a DiscoveryResponse"),
    ];
    for (text, said) in rows {
        let fault = parse(text, FileFormat::Yaml).unwrap_err().to_string();
        assert!(fault.contains(said), "{text:?}: {fault}");
    }
    assert_eq!(parse("resources: []\n", FileFormat::Yaml).unwrap(), [""; 0]);
    assert_eq!(parse("[]", FileFormat::Json).unwrap(), [""; 0]);
    assert_eq!(parse(r#"{"versionInfo":"3"}"#, FileFormat::Json).unwrap(), [""; 0]);
}

/// All faults of a file are found at once, several in one resource too, with the words that were probably meant.
#[test]
fn all_faults_are_found() {
    let text = "resources:
- '@type': type.googleapis.com/envoy.config.cluster.v3.Cluster
  nme: a
  conect_timeout: 1s
  type: STATICC
  load_assignment:
    cluster_name: a
    endpoints:
    - lb_endpoints: [{ endpont: {} }, { load_balancing_weight: many }]
    - colour: red
- '@type': type.googleapis.com/envoy.config.cluster.v3.Clustr
  name: b
- '@type': type.googleapis.com/envoy.config.listener.v3.Cluster
- '@type': type.googleapis.com/envoy.config.cluster.v3.Cluster
  name: good
- '@type': type.googleapis.com/envoy.config.listener.v3.Listener
  name: c
  filter_chains:
  - filters:
    - name: x
      typed_config: { '@type': type.googleapis.com/acme.Filter }
    - name: y
      typed_config: { '@type': type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy, cluser: a }
";
    let faults = ParsedFile::parse(text.as_bytes(), FileFormat::Yaml, &dictionary(), now()).unwrap_err();
    let faults: Vec<String> = faults.iter().map(ToString::to_string).collect();
    let begins = [
        "3:3: resources[0]: envoy.config.cluster.v3.Cluster has no field `nme`; did you mean `name`?",
        "4:3: resources[0]: envoy.config.cluster.v3.Cluster has no field `conect_timeout`; did you mean `connect_timeout`?",
        "5:9: resources[0].type: expected one of STATIC, STRICT_DNS, LOGICAL_DNS, EDS, ORIGINAL_DST, found `STATICC`; did you mean `STATIC`?",
        "9:24: resources[0].load_assignment.endpoints[0].lb_endpoints[0]: envoy.config.endpoint.v3.LbEndpoint has no field `endpont`; did you mean `endpoint`?",
        "9:64: resources[0].load_assignment.endpoints[0].lb_endpoints[1].load_balancing_weight: expected a whole number, found `many`",
        "10:7: resources[0].load_assignment.endpoints[1]: envoy.config.endpoint.v3.LocalityLbEndpoints has no field `colour`",
        "11:12: resources[1]: the type `type.googleapis.com/envoy.config.cluster.v3.Clustr` is not known; did you mean `envoy.config.cluster.v3.Cluster`?",
        "13:12: resources[2]: the type `type.googleapis.com/envoy.config.listener.v3.Cluster` is not known; did you mean `envoy.config.cluster.v3.Cluster`?",
        "21:32: resources[4].filter_chains[0].filters[0].typed_config: the type `type.googleapis.com/acme.Filter` is not known; add its",
        "23:108: resources[4].filter_chains[0].filters[1].typed_config: envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy has no field `cluser`; did you mean `cluster`?",
    ];
    assert_eq!(faults.len(), begins.len(), "{faults:#?}");
    for (fault, begin) in faults.iter().zip(begins) {
        assert!(fault.starts_with(begin), "{fault}\n{begin}");
    }
    // The list has an end, in one resource as well.
    let many = format!(
        "- '@type': {LISTENER}\n  filter_chains: [{}]\n",
        "{ x: 1 }, ".repeat(1000)
    );
    let faults = ParsedFile::parse(many.as_bytes(), FileFormat::Yaml, &dictionary(), now()).unwrap_err();
    assert_eq!(faults.len(), 100);
}

/// J-05: with the switch, unknown fields are left out and reported.
#[test]
fn lenient() {
    let lenient = Dictionary {
        unknown: Unknown::Warn,
        ..dictionary()
    };
    let text = clusters(&["a"]) + "  nme: b\n";
    assert_eq!(
        parse_with(text.as_bytes(), FileFormat::Yaml, &lenient).unwrap(),
        ["cds a"]
    );
    let parsed = ParsedFile::parse(text.as_bytes(), FileFormat::Yaml, &lenient, now()).unwrap();
    assert!(parsed.warnings[0].to_string().contains("nme"));
}

/// I-01: the file extension determines the format, in upper or lower case.
#[test]
fn endings() {
    for (file, format) in [
        ("a.yaml", FileFormat::Yaml),
        ("a.YML", FileFormat::Yaml),
        ("a.json", FileFormat::Json),
        ("a.PB", FileFormat::Binary),
        ("a.pb_text", FileFormat::Text),
        ("a.conf", FileFormat::Json),
        ("a", FileFormat::Json),
    ] {
        assert_eq!(FileFormat::of(Path::new(file)), format, "{file}");
    }
    assert_eq!(FileFormat::listed(Path::new("README.md")), None);
}

/// I-05: bytes in no known format are an error and not an empty state.
#[test]
fn foreign_bytes() {
    for foreign in [
        &b"\x7fELF\x02\x01\x01\0\0\0"[..],
        b"resources: []\n",
        b"\xff\xfe",
        b"\0\0\0\0",
        b"\x8a\x01\0",
    ] {
        for format in [FileFormat::Binary, FileFormat::Json, FileFormat::Text] {
            let fault = parse_with(foreign, format, &dictionary());
            assert!(
                fault.is_err() || format == FileFormat::Text,
                "{foreign:?} {format:?} {fault:?}"
            );
        }
    }
    for bad in [&b"\x7fELF\x02\x01\x01\0\0\0"[..], b"\xff\xfe", b"name: \xc3\x28\n"] {
        assert!(parse_with(bad, FileFormat::Yaml, &dictionary()).is_err(), "{bad:?}");
    }
}

/// The files of the quick start are valid.
#[test]
fn the_quick_start_is_good() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("config/quickstart");
    let mut file_set = file_set(&path);
    let found = file_set.look(now());
    assert_eq!((found.new_faults, found.warnings), (Vec::new(), Vec::new()));
    let content = file_set.content();
    assert!(content.whole());
    for (of, name) in [
        ("envoy.config.listener.v3.Listener", "web"),
        ("envoy.config.route.v3.RouteConfiguration", "web"),
        ("envoy.config.cluster.v3.Cluster", "relay"),
        ("envoy.config.cluster.v3.Cluster", "secure"),
        ("envoy.config.endpoint.v3.ClusterLoadAssignment", "relay"),
        ("envoy.config.endpoint.v3.ClusterLoadAssignment", "secure"),
        ("envoy.extensions.transport_sockets.tls.v3.Secret", "authority"),
    ] {
        assert!(
            content.resource(&TypeUrl::new(of), &super::name(name)).is_some(),
            "{of} {name}"
        );
    }
}
