// SPDX-License-Identifier: Apache-2.0
//! Text as JSON, YAML and the text format: any text that can be read is written and read again as the same.

use distributary::json::{Bounds, Fault, Schemas, Secrets, Tree, Unknown};

const BOUNDS: Bounds = Bounds { values: 100_000 };

pub(crate) fn run(text: &[u8]) {
    json(text);
    yaml(text);
    let schemas = Schemas::standard();
    let name = "envoy.config.core.v3.TypedExtensionConfig";
    if let Ok(body) = schemas.encode_text(name, text) {
        schemas
            .decode(name, &body, Secrets::Show)
            .expect("a message that was read can be written");
    }
    let _ = schemas.request(text);
}

/// Another parser agrees on what is JSON, apart from the limits of both.
fn json(text: &[u8]) {
    let ours = Tree::json(text, BOUNDS);
    let theirs = serde_json::from_slice::<serde_json::Value>(text.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(text));
    match (ours, theirs) {
        (Ok(tree), Ok(_)) => resource(&tree),
        (Ok(tree), Err(error)) => {
            assert!(error.to_string().contains("number out of range"), "{error}");
            resource(&tree);
        }
        (Err(fault), Ok(_)) => assert!(stricter(&fault), "{fault}"),
        (Err(_), Err(_)) => {}
    }
}

fn stricter(fault: &Fault) -> bool {
    ["is there twice", "nested deeper", "more than"]
        .iter()
        .any(|reason| fault.message.contains(reason))
}

fn yaml(text: &[u8]) {
    let Ok(tree) = Tree::yaml(text, BOUNDS) else { return };
    resource(&tree);
    let written = tree.to_yaml();
    let again = Tree::yaml(written.as_bytes(), BOUNDS).unwrap_or_else(|fault| panic!("{fault} in {written}"));
    assert_eq!(again.to_json(), tree.to_json(), "{written}");
}

fn resource(tree: &Tree) {
    let schemas = Schemas::standard();
    let _ = schemas.response(tree, Unknown::Warn);
    let Ok(read) = schemas.resource(tree, "", Unknown::Ignore) else {
        return;
    };
    let any = read.value;
    let json = schemas
        .resource_json(&any.type_url, &any.value, Secrets::Show)
        .unwrap_or_else(|fault| panic!("a message that was read cannot be written: {fault}"));
    assert_eq!(json.unknown_fields, 0);
    let again = Tree::json(&json.text, Bounds::FILE).expect("the written text is JSON");
    let again = schemas
        .resource(&again, "", Unknown::Deny)
        .expect("the written text can be read");
    assert_eq!(again.value, any);
    schemas
        .resource_json(&any.type_url, &any.value, Secrets::Redact)
        .expect("without secrets, too");
}
