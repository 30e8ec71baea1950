// SPDX-License-Identifier: Apache-2.0
//! Bytes as messages: the JSON of any message can be read again, and is then written the same. The first byte selects the type.

use distributary::json::{Bounds, Schemas, Secrets, Tree, Unknown};

const NAMES: [&str; 8] = [
    "google.protobuf.Any",
    "envoy.config.listener.v3.Listener",
    "envoy.config.cluster.v3.Cluster",
    "envoy.config.route.v3.RouteConfiguration",
    "envoy.config.endpoint.v3.ClusterLoadAssignment",
    "envoy.extensions.transport_sockets.tls.v3.Secret",
    "envoy.service.runtime.v3.Runtime",
    "google.protobuf.FieldMask",
];

pub(crate) fn run(data: &[u8]) {
    let Some((choice, body)) = data.split_first() else {
        return;
    };
    let Some(name) = NAMES.get(usize::from(*choice) % NAMES.len()) else {
        return;
    };
    let schemas = Schemas::standard();
    let _ = schemas.decode(name, body, Secrets::Redact);
    let Ok(json) = schemas.decode(name, body, Secrets::Show) else {
        return;
    };
    let text = String::from_utf8(json.text).expect("JSON is UTF-8");
    let tree = Tree::json(text.as_bytes(), Bounds::FILE);
    match tree.and_then(|tree| schemas.encode(name, &tree, "", Unknown::Deny)) {
        Ok(again) => {
            let written = schemas
                .decode(name, &again.value, Secrets::Show)
                .expect("a message that was read can be written");
            assert_eq!(String::from_utf8_lossy(&written.text), text);
        }
        // A level of messages is one, two or three levels of JSON.
        Err(fault) => assert!(fault.message.contains("nested deeper"), "{fault} in {text}"),
    }
}
