// SPDX-License-Identifier: Apache-2.0
//! A file for every type that xDS carries, in the form in which JSON is written: reading and writing it changes nothing.

use std::path::{Path, PathBuf};

use distributary::json::{Bounds, Schemas, Secrets, Tree, Unknown};
use distributary::xds::TypeUrl;

fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/json/golden");
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    files
}

/// J-01, J-02, J-03, J-05: read, written, and read again from YAML, each is the same, and the bytes are.
#[test]
fn every_type_there_and_back() {
    let schemas = Schemas::standard();
    let mut short_names = Vec::new();
    for path in files() {
        let text = std::fs::read_to_string(&path).unwrap();
        let tree = Tree::json(text.as_bytes(), Bounds::FILE).unwrap_or_else(|fault| panic!("{path:?}: {fault}"));
        let resource = schemas
            .resource(&tree, "", Unknown::Deny)
            .unwrap_or_else(|fault| panic!("{path:?}: {fault}"))
            .value;
        let json = schemas
            .resource_json(&resource.type_url, &resource.value, Secrets::Show)
            .unwrap();
        assert_eq!(json.unknown_fields, 0);
        let again = Tree::json(&json.text, Bounds::FILE).unwrap();
        assert_eq!(again.to_json(), text, "{path:?}");
        let yaml = Tree::yaml(again.to_yaml().as_bytes(), Bounds::FILE).unwrap();
        assert_eq!(
            schemas.resource(&yaml, "", Unknown::Deny).unwrap().value,
            resource,
            "{path:?}"
        );
        short_names.push(TypeUrl::new(&resource.type_url).short().unwrap_or("other"));
    }
    for expected in [
        "cds",
        "eds",
        "leds",
        "leds_collection",
        "lds",
        "rds",
        "srds",
        "vhds",
        "sds",
        "rtds",
        "ecds",
        "rlsds",
        "thrift_rds",
        "cds_v2",
        "eds_v2",
        "lds_v2",
        "rds_v2",
        "srds_v2",
        "vhds_v2",
        "sds_v2",
        "rtds_v2",
    ] {
        assert!(short_names.contains(&expected), "no file for {expected}");
    }
}
