// SPDX-License-Identifier: Apache-2.0
//! The messages of REST.

use bytes::Bytes;
use distributary::json::{Bounds, Schemas, Secrets, Tree, Unknown, response};

use crate::good;

/// H-01, J-01, J-05: a request in either spelling; unknown fields of a client are ignored.
#[test]
fn requests_come_in() {
    let schemas = Schemas::standard();
    for body in [
        "{\"version_info\":\"1\",\"node\":{\"id\":\"n\",\"cluster\":\"c\",\"metadata\":{\"a\":[1]},\"user_agent_name\":\"envoy\",\
         \"user_agent_build_version\":{\"version\":{\"major_number\":1},\"metadata\":{}}},\"resource_names\":[\"x\",\"y\"],\
         \"type_url\":\"t\",\"response_nonce\":\"5\"}",
        "{\"versionInfo\":\"1\",\"node\":{\"id\":\"n\",\"cluster\":\"c\",\"metadata\":{\"a\":[1]},\"userAgentName\":\"envoy\",\
         \"userAgentBuildVersion\":{\"version\":{\"majorNumber\":1},\"metadata\":{}},\"build_version\":\"old\"},\
         \"resourceNames\":[\"x\",\"y\"],\"typeUrl\":\"t\",\"responseNonce\":\"5\",\"something\":{\"else\":[1]}}",
    ] {
        let request = schemas
            .request(body.as_bytes())
            .unwrap_or_else(|fault| panic!("{body}: {fault}"));
        assert_eq!(request.version_info, "1");
        assert_eq!(request.resource_names, ["x", "y"]);
        assert_eq!((request.type_url.as_str(), request.response_nonce.as_str()), ("t", "5"));
        let node = request.node.unwrap();
        assert_eq!((node.id.as_str(), node.cluster.as_str()), ("n", "c"));
        assert_eq!(node.metadata.unwrap().fields.len(), 1);
        assert_eq!(node.user_agent_name, "envoy");
    }
    assert_eq!(schemas.request(b"{}").unwrap(), Default::default());
}

/// H-02: a body that is no request is answered with the reason.
#[test]
fn requests_that_are_none() {
    for (body, said) in [
        (&b""[..], "1:1: the text ends where a value was expected"),
        (
            b"[]",
            "1:1: expected an object (envoy.service.discovery.v3.DiscoveryRequest), found a list",
        ),
        (
            b"null",
            "1:1: expected an object (envoy.service.discovery.v3.DiscoveryRequest), found null",
        ),
        (
            b"{\"resource_names\":\"x\"}",
            "1:19: resource_names: expected a list, found the string \"x\"",
        ),
        (
            b"{\"node\":{\"id\":5}}",
            "1:15: node.id: expected a string, found the number 5",
        ),
        (b"\x1f\x8b\x08", "1:2: not UTF-8; save the text as UTF-8"),
    ] {
        let fault = Schemas::standard().request(body).unwrap_err();
        assert_eq!(fault.to_string(), said);
    }
    let many = format!("{{\"resource_names\":[{}0]}}", "0,".repeat(2_000_000));
    let fault = Schemas::standard().request(many.as_bytes()).unwrap_err();
    assert!(fault.message.contains("more than 1000000 values"), "{fault}");
}

/// H-02, J-03: a response is joined from shared pieces, and is what a client expects.
#[test]
fn responses_are_joined_from_pieces() {
    let schemas = Schemas::standard();
    let url = "type.googleapis.com/envoy.config.cluster.v3.Cluster";
    let piece = |name: &str| {
        let body = good("envoy.config.cluster.v3.Cluster", &format!("{{\"name\":\"{name}\"}}"));
        Bytes::from(schemas.resource_json(url, &body, Secrets::Show).unwrap().text)
    };
    let pieces = [piece("a"), piece("b")];
    for count in 0..=2 {
        let parts = response("v\"1", url, "relay", &pieces[..count]);
        assert_eq!(
            parts
                .iter()
                .filter(|part| pieces.iter().any(|piece| piece.as_ptr() == part.as_ptr()))
                .count(),
            count,
            "shared and not copied"
        );
        let whole = parts.concat();
        let tree = Tree::json(&whole, Bounds::FILE).unwrap();
        let read = schemas.response(&tree, Unknown::Deny).unwrap();
        assert_eq!((read.version_info.as_str(), read.type_url.as_str()), ("v\"1", url));
        assert_eq!((read.control_plane.as_str(), read.nonce.as_str()), ("relay", ""));
        let names: Vec<_> = read
            .resources
            .into_iter()
            .map(|resource| resource.unwrap().value)
            .collect();
        assert_eq!(names.len(), count);
        for (any, piece) in names.iter().zip(&pieces) {
            assert_eq!(any.type_url, url);
            let again = schemas.resource_json(&any.type_url, &any.value, Secrets::Show).unwrap();
            assert_eq!(again.text, *piece);
        }
        assert!(
            crate::encode(
                "envoy.service.discovery.v3.DiscoveryResponse",
                std::str::from_utf8(&whole).unwrap()
            )
            .is_ok()
        );
    }
}

/// H-07, J-04: a bad resource of a response is named, and its neighbours are read.
#[test]
fn a_bad_resource_stands_alone() {
    let text = "versionInfo: v1\nresources:\n- {\"@type\": x/envoy.config.cluster.v3.Cluster, name: a}\n\
                - {\"@type\": x/acme.v1.Policy}\n- {\"@type\": x/envoy.config.cluster.v3.Cluster, nam: a}\n- 5\n";
    let tree = Tree::yaml(text.as_bytes(), Bounds::FILE).unwrap();
    let read = Schemas::standard().response(&tree, Unknown::Deny).unwrap();
    let said: Vec<String> = read
        .resources
        .iter()
        .map(|resource| match resource {
            Ok(parsed) => parsed.value.type_url.clone(),
            Err(fault) => fault.within("a.yaml"),
        })
        .collect();
    assert_eq!(
        said,
        [
            "x/envoy.config.cluster.v3.Cluster",
            "a.yaml:4:13: resources[1]: the type `x/acme.v1.Policy` is not known; add its descriptors to `descriptors` in the \
             configuration",
            "a.yaml:5:48: resources[2]: envoy.config.cluster.v3.Cluster has no field `nam`",
            "a.yaml:6:3: resources[3]: expected an object with `@type`, found `5`",
        ]
    );
    let tree = crate::tree("{\"resources\":{}}");
    let fault = Schemas::standard().response(&tree, Unknown::Deny).unwrap_err();
    assert_eq!(fault.to_string(), "1:14: resources: expected a list, found an object");
    let tree = crate::tree("{\"ressources\":[]}");
    let fault = Schemas::standard().response(&tree, Unknown::Deny).unwrap_err();
    assert_eq!(
        fault.to_string(),
        "1:2: DiscoveryResponse has no field `ressources`; did you mean `resources`?"
    );
}
