// SPDX-License-Identifier: Apache-2.0
//! REST bodies of both directions: a request that can be read is written and read again as the same; a response that can be
//! read is written as one with the same content.

use distributary::json::{Bounds, Schemas, Secrets, Tree, Unknown, response};
use prost::Message;

const REQUEST: &str = "envoy.service.discovery.v3.DiscoveryRequest";

pub(crate) fn run(body: &[u8]) {
    let schemas = Schemas::standard();
    if let Ok(request) = schemas.request(body)
        && let Ok(json) = schemas.decode(REQUEST, &request.encode_to_vec(), Secrets::Show)
    {
        match schemas.request(&json.text) {
            Ok(again) => assert_eq!(again, request),
            Err(fault) => assert!(fault.message.contains("nested deeper"), "{fault}"),
        }
    }
    let Ok(read) = Tree::json(body, Bounds::REQUEST).and_then(|tree| schemas.response(&tree, Unknown::Ignore)) else {
        return;
    };
    let good = read.resources.iter().flatten();
    let written: Vec<_> = good
        .filter_map(|parsed| {
            let json = schemas.resource_json(&parsed.value.type_url, &parsed.value.value, Secrets::Show);
            Some(json.ok()?.text.into())
        })
        .collect();
    let text = response(&read.version_info, &read.type_url, &read.control_plane, &written).concat();
    let again = match Tree::json(&text, Bounds::FILE).and_then(|tree| schemas.response(&tree, Unknown::Deny)) {
        Ok(again) => again,
        Err(fault) => {
            assert!(fault.message.contains("nested deeper"), "{fault}");
            return;
        }
    };
    assert_eq!((again.version_info, again.type_url), (read.version_info, read.type_url));
    assert_eq!(again.resources.len(), written.len());
}
