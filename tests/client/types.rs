// SPDX-License-Identifier: Apache-2.0
//! Types as control planes have them: resources without a name, and other prefixes.

use bytes::Bytes;
use proto::envoy::service::discovery::v3::Resource;
use proto::google::protobuf::Any;
use xds::{Dialect, Name, NameRule, ServerFeatures, Target, Traits, TypeUrl, Types, Want};

use crate::{CDS, Upstream, VHDS, delta, refusal, secs, sotw};

const NDS: &str = "type.googleapis.com/istio.networking.nds.v1.NameTable";
const PCDS: &str = "type.googleapis.com/istio.mesh.v1alpha1.ProxyConfig";
/// A type that the relay knows nothing about.
const TABLE: &str = "type.googleapis.com/acme.v1.Table";

/// A body whose field 1 is a message, like a name table's.
fn table(type_url: &str, content: &str) -> Any {
    let mut value = vec![
        0x0a,
        0x03,
        0x0a,
        0x01,
        b'k',
        0x7a,
        u8::try_from(content.len() + 1).unwrap(),
        b'=',
    ];
    value.extend(content.as_bytes());
    Any {
        type_url: type_url.to_owned(),
        value: Bytes::from(value),
    }
}

fn nameless(body: Any) -> Resource {
    Resource {
        resource: Some(body),
        ..Resource::default()
    }
}

impl Upstream {
    /// A response of a control plane that gives no names, in its dialect.
    fn hears_table(&mut self, dialect: Dialect, type_url: &str, nonce: &str, content: &str, removed: &[&str]) {
        match dialect {
            Dialect::Sotw => {
                let mut response = sotw(type_url, content, nonce, &[]);
                response.resources = vec![table(type_url, content)];
                self.hears_sotw(response);
            }
            Dialect::Delta => {
                let mut response = delta(type_url, nonce, &[], removed);
                response.resources = vec![nameless(table(type_url, content))];
                self.hears(response);
            }
        }
    }
}

const DIALECTS: [Dialect; 2] = [Dialect::Sotw, Dialect::Delta];

/// a resource without a name is the only one of its type; a new one replaces it, also on the next stream.
#[test]
fn the_only_one() {
    for dialect in DIALECTS {
        for type_url in [NDS, PCDS, TABLE] {
            let mut upstream = Upstream::streaming(dialect, type_url, &["*"]);
            upstream.hears_table(dialect, type_url, "n1", "1", &[]);
            assert_eq!(refusal(&mut upstream), "");
            upstream.hears_table(dialect, type_url, "n2", "2", &[]);
            assert_eq!(refusal(&mut upstream), "");
            assert!(
                upstream.wildcard(type_url).starts_with("=2"),
                "{}",
                upstream.wildcard(type_url)
            );
            upstream.reconnect();
            // A version without a name cannot be declared.
            assert!(upstream.sent().iter().all(|line| !line.contains('@')));
            upstream.hears_table(dialect, type_url, "n3", "2", &[]);
            upstream.sent();
            assert_eq!(upstream.after(secs(60)).wildcard(type_url), "=2 complete");
        }
    }
}

/// it answers to any names that were asked for. A server that in the same response removes those names, as istiod does,
/// removes nothing.
#[test]
fn by_any_name() {
    for dialect in DIALECTS {
        for type_url in [NDS, TABLE] {
            let mut upstream = Upstream::streaming(dialect, type_url, &["x", "y"]);
            upstream.hears_table(dialect, type_url, "n1", "1", &["x", "y"]);
            assert_eq!(refusal(&mut upstream), "");
            assert_eq!(upstream.named(type_url), "=1");
            // The relay waits for neither name, nor for another one that is asked for later.
            upstream.want(type_url, "z");
            upstream.sent();
            assert_eq!(upstream.after(secs(60)).named(type_url), "=1");
            upstream.unwant(type_url, "x");
            upstream.unwant(type_url, "y");
            assert_eq!(upstream.named(type_url), "=1");
            upstream.unwant(type_url, "z");
            assert_eq!(upstream.named(type_url), "");
        }
    }
}

/// in delta a server can remove it.
#[test]
fn it_goes() {
    let mut upstream = Upstream::streaming(Dialect::Delta, NDS, &["x"]);
    upstream.hears_table(Dialect::Delta, NDS, "n1", "1", &[]);
    upstream.hears(delta(NDS, "n2", &[], &[""]));
    assert_eq!(upstream.named(NDS), "x:Said");
    let mut upstream = Upstream::streaming(Dialect::Delta, NDS, &["*"]);
    upstream.hears_table(Dialect::Delta, NDS, "n1", "1", &[]);
    upstream.hears(delta(NDS, "n2", &[], &[""]));
    assert_eq!(upstream.wildcard(NDS), "");
}

/// bytes that are no message are no resource, whatever the type.
#[test]
fn garbage() {
    for type_url in [NDS, TABLE] {
        let mut upstream = Upstream::streaming(Dialect::Sotw, type_url, &["*"]);
        let mut response = sotw(type_url, "1", "n1", &[]);
        let value = Bytes::from_static(b"\x0a\x05x");
        let type_url = type_url.to_owned();
        response.resources = vec![Any { type_url, value }];
        upstream.hears_sotw(response);
        upstream.refuses("has no name");
    }
}

/// for types whose resources have names, a missing name stays a fault, and so do two resources without a name.
#[test]
fn names_that_are_missing() {
    for type_url in [CDS, VHDS] {
        let mut upstream = Upstream::streaming(Dialect::Delta, type_url, &["*"]);
        let body = Any {
            type_url: type_url.to_owned(),
            value: Bytes::from_static(&[0x7a, 0x02, b'=', b'1']),
        };
        upstream.hears_with(type_url, ("", "n1"), &[], [nameless(body)]);
        upstream.refuses("has no name");
    }
    let mut upstream = Upstream::streaming(Dialect::Sotw, NDS, &["*"]);
    let mut response = sotw(NDS, "1", "n1", &[]);
    response.resources = vec![table(NDS, "1"), table(NDS, "2")];
    upstream.hears_sotw(response);
    upstream.refuses("the resource without a name is in the response more than once");
    assert_eq!(upstream.wildcard(NDS), "");
}

/// C-21: in SotW virtual hosts are not asked for, unless the operator configures where their names are; in delta they are. What
/// is held stays if the server stops speaking delta.
#[test]
fn virtual_hosts() {
    let mut upstream = Upstream::streaming(Dialect::Delta, VHDS, &["main/a", "main/b"]);
    upstream.hears(delta(VHDS, "n1", &["main/a=1"], &[]));
    upstream.disconnect();
    upstream.client.handle_dialect(Dialect::Sotw);
    let told = upstream.client.handle_no_delta("it says so");
    assert_eq!(told.len(), 1);
    upstream.connect();
    assert_eq!(upstream.sent(), [""; 0]);
    assert!(!upstream.client.wanted());
    upstream.hears_sotw(sotw(VHDS, "2", "n1", &["main/a=2"]));
    assert_eq!(upstream.sent(), [""; 0]);
    assert_eq!(upstream.named(VHDS), "main/a=1");

    let named = Traits {
        name: NameRule::Field(1),
        delta_only: false,
        ..*TypeUrl::new(VHDS).traits()
    };
    let types = Types::with([("envoy.config.route.v3.VirtualHost".to_owned(), named)].into());
    let hosts = types.resolve(VHDS);
    let mut upstream = Upstream::with_types(Dialect::Sotw, ServerFeatures::default(), types);
    upstream.client.handle_want(&Want {
        type_url: hosts,
        target: Target::Name(Name::from("main/a")),
        wanted: true,
        written: None,
    });
    assert_eq!(upstream.client.handle_no_delta("it says so").len(), 0);
    upstream.connect();
    assert_eq!(upstream.sent(), ["vhds [main/a] v"]);
}

/// a type is asked for with the prefix that it came with; the usual prefix and none are equal.
#[test]
fn prefixes() {
    let name = "envoy.config.cluster.v3.Cluster";
    let mut upstream = Upstream::streaming(Dialect::Delta, name, &["a"]);
    let mut response = delta(name, "n1", &["a=1"], &[]);
    response.type_url = CDS.to_owned();
    upstream.hears(response);
    assert_eq!(refusal(&mut upstream), "");
    assert_eq!(upstream.named(CDS), "a=1");

    let other = "acme.com/envoy.config.cluster.v3.Cluster";
    let mut upstream = Upstream::streaming(Dialect::Delta, other, &["a"]);
    upstream.hears_with(other, ("", "n1"), &["a=1"], [crate::resource(CDS, "b", "1")]);
    upstream.refuses("has the type \"envoy.config.cluster.v3.Cluster\", not \"acme.com/");
    assert_eq!(upstream.named(other), "a=1");
    assert_eq!(upstream.named(CDS), "");
}
