// SPDX-License-Identifier: Apache-2.0
//! Entries that are for some clients only (F-16).

use bytes::Bytes;
use proto::envoy::service::discovery::v3::{DeltaDiscoveryResponse, Resource, ResourceName};
use xds::Dialect;

use crate::{EDS, Upstream, delta, refusal, resource};

fn full_name(name: &str, constraints: &'static [u8]) -> ResourceName {
    ResourceName {
        name: name.to_owned(),
        dynamic_parameter_constraints: Bytes::from_static(constraints),
    }
}

/// `a=1`, or `a[]=1` for some clients only.
fn entry(text: &str) -> Resource {
    let (name, content) = text.rsplit_once('=').unwrap();
    let Some(name) = name.strip_suffix("[]") else {
        return resource(EDS, name, content);
    };
    Resource {
        name: String::new(),
        resource_name: Some(full_name(name, b"some")),
        ..resource(EDS, name, content)
    }
}

impl Upstream {
    /// Takes a response with these entries. Returns how many counted, and how many were ignored.
    fn takes(&mut self, nonce: &str, entries: &[&str]) -> (usize, usize) {
        let entries = entries.iter().map(|text| entry(text));
        self.hears_with(EDS, (nonce, nonce), &[], entries);
        let received = self.client.take_received().unwrap();
        (received.valid, received.ignored)
    }
}

/// F-16: of several entries of a name the one for all clients counts, else the first; the others are counted, and nothing is
/// rejected for them. E-12: two entries for all clients are still one too many.
#[test]
fn one_entry_of_each_name_counts() {
    for dialect in [Dialect::Delta, Dialect::Sotw] {
        let mut upstream = Upstream::streaming(dialect, EDS, &["a", "b", "c"]);
        let entries = ["a[]=1", "a=2", "a[]=3", "b[]=4", "b[]=5", "c[]=6"];
        assert_eq!(upstream.takes("1", &entries), (3, 3));
        assert_eq!(upstream.named(EDS), "a=2 b=4 c=6");
        assert_eq!(refusal(&mut upstream), "");
        assert_eq!(upstream.takes("2", &["a[]=7", "b=8"]), (2, 0));
        assert_eq!(upstream.named(EDS), "a=7 b=8 c=6");
        assert_eq!(refusal(&mut upstream), "");
        assert_eq!(upstream.takes("3", &["a[]=9", "b=9", "b=10"]), (1, 0));
        assert_eq!(upstream.named(EDS), "a=9 b=8 c=6");
        upstream.refuses("resource \"b\" is in the response more than once");
    }
}

/// F-16: that something for some clients only is gone says nothing about the name.
#[test]
fn a_removal_for_some_clients_is_ignored() {
    let mut upstream = Upstream::streaming(Dialect::Delta, EDS, &["a", "b"]);
    upstream.takes("1", &["a=1", "b[]=2"]);
    upstream.hears(DeltaDiscoveryResponse {
        removed_resource_names: vec![full_name("a", b"some"), full_name("b", b"")],
        ..delta(EDS, "2", &[], &[])
    });
    assert_eq!(upstream.named(EDS), "a=1 b:Said");
    assert_eq!(upstream.client.take_received().unwrap().ignored, 1);
    assert_eq!(refusal(&mut upstream), "");
}
