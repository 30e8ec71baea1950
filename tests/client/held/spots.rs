// SPDX-License-Identifier: Apache-2.0
//! Which addresses of listeners cannot be there at the same time.

use bytes::Bytes;
use xds::{Dialect, Spot, Spots};

use super::reading::encoded;
use super::stage::{Stage, USUAL};
use crate::{CDS, LDS, VHDS, ms, secs};

fn listener(fields: &str) -> Bytes {
    encoded(LDS, &format!(r#""name": "x", {fields}"#))
}

/// A listener with this address, whose fields may be followed by those of the listener.
fn socket(address: &str, port: u32, of_address: &str, of_listener: &str) -> Bytes {
    listener(&format!(
        r#""address": {{"socket_address": {{"address": "{address}", "port_value": {port}{of_address}}}}}{of_listener}"#
    ))
}

fn collide(one: &Bytes, other: &Bytes) -> bool {
    let (one, other) = (Spot::of_listener(one), Spot::of_listener(other));
    let any = |one: &[Spot], other: &[Spot]| one.iter().any(|one| other.iter().any(|other| one.collides(other)));
    assert_eq!(any(&one, &other), any(&other, &one), "{one:?} {other:?}");
    any(&one, &other)
}

/// All addresses of a machine have the port of each. Protocols, families, network namespaces and ports are apart; a listener that binds
/// no socket takes its own address only.
#[test]
fn sockets() {
    const UDP: &str = r#", "protocol": "UDP""#;
    const COMPAT: &str = r#", "ipv4_compat": true"#;
    const UNBOUND: &str = r#", "bind_to_port": false"#;
    let all = socket("0.0.0.0", 80, "", "");
    let cases = [
        (socket("0.0.0.0", 80, "", ""), true),
        (socket("127.0.0.1", 80, "", ""), true),
        (socket("::ffff:127.0.0.1", 80, "", ""), true),
        (socket("::", 80, COMPAT, ""), true),
        (socket("::", 80, "", ""), false),
        (socket("::1", 80, COMPAT, ""), false),
        (socket("127.0.0.1", 81, "", ""), false),
        (socket("127.0.0.1", 80, UDP, ""), false),
        (
            socket("127.0.0.1", 80, r#", "network_namespace_filepath": "/run/netns/a""#, ""),
            false,
        ),
        (socket("example.com", 80, "", ""), false),
        (socket("127.0.0.1", 80, "", UNBOUND), false),
        (socket("0.0.0.0", 80, "", UNBOUND), true),
        (
            socket("127.0.0.1", 80, "", r#", "deprecated_v1": {"bind_to_port": false}"#),
            false,
        ),
        (socket("127.0.0.1", 80, "", r#", "bind_to_port": true"#), true),
        (
            listener(
                r#""address": {"socket_address": {"address": "10.0.0.1", "port_value": 90}}, "additional_addresses": [{"address": {"socket_address": {"address": "10.0.0.1", "port_value": 80}}}]"#,
            ),
            true,
        ),
        (listener(r#""address": {"pipe": {"path": "/80"}}"#), false),
    ];
    for (n, (other, expected)) in cases.iter().enumerate() {
        assert_eq!(collide(&all, other), *expected, "{n}");
    }
    assert!(!collide(
        &socket("10.0.0.1", 80, "", ""),
        &socket("10.0.0.2", 80, "", "")
    ));
    assert!(collide(&socket("::", 80, "", ""), &socket("::1", 80, "", "")));
    // The system gives each listener a port of its own.
    assert!(!collide(&socket("0.0.0.0", 0, "", ""), &socket("0.0.0.0", 0, "", "")));
}

/// Pipes and internal listeners have names.
#[test]
fn names() {
    let pipe = |path: &str| listener(&format!(r#""address": {{"pipe": {{"path": "{path}"}}}}"#));
    let internal = |name: &str| {
        listener(&format!(
            r#""address": {{"envoy_internal_address": {{"server_listener_name": "{name}"}}}}"#
        ))
    };
    assert!(collide(&pipe("/a"), &pipe("/a")) && collide(&internal("a"), &internal("a")));
    assert!(!collide(&pipe("/a"), &pipe("/b")) && !collide(&internal("/a"), &pipe("/a")));
    assert_eq!(Spot::of_listener(b"\xff\xff"), []);
}

/// Many spots are compared as each of them is.
#[test]
fn many() {
    let hosts = [
        "0.0.0.0",
        "10.0.0.1",
        "10.0.0.2",
        "::",
        "::1",
        "fd00::1",
        "a.example",
        "both",
    ];
    let mut all = Vec::new();
    for host in hosts {
        for (port, protocol) in [(80, "TCP"), (80, "UDP"), (81, "TCP")] {
            for bound in [true, false] {
                let (host, compat) = if host == "both" { ("::", true) } else { (host, false) };
                let of_address = format!(r#", "protocol": "{protocol}", "ipv4_compat": {compat}"#);
                let of_listener = format!(r#", "bind_to_port": {bound}"#);
                all.extend(Spot::of_listener(&socket(host, port, &of_address, &of_listener)));
            }
        }
    }
    assert_eq!(all.len(), hosts.len() * 6);
    for (n, one) in all.iter().enumerate() {
        for (m, other) in all.iter().enumerate() {
            for third in &all[n.min(m)..] {
                let spots: Spots = [one.clone(), other.clone()].into_iter().collect();
                let expected = one.collides(third) || other.collides(third);
                assert_eq!(spots.collide(third), expected, "{one:?} {other:?} {third:?}");
            }
        }
    }
}

/// D-03, C-26: a held listener on all addresses goes with the addition of one on a single address.
#[test]
fn a_part_of_a_held_address() {
    let mut stage = Stage::new(Dialect::Delta, USUAL, &[(CDS, "*"), (LDS, "*")]);
    stage.put(LDS, "all", socket("0.0.0.0", 80, "", ""));
    stage.put(LDS, "other", socket("0.0.0.0", 81, "", ""));
    stage.pass(secs(10));
    stage.remove(LDS, "all");
    stage.remove(LDS, "other");
    stage.restart();
    assert_eq!(stage.after(secs(10)).served(LDS), "all other");
    stage.put(LDS, "one", socket("127.0.0.1", 80, "", ""));
    assert_eq!(stage.after(ms(200)).served(LDS), "one other");
}

/// What a listener has already it does not take: a change of it lets nothing go that shares its address.
#[test]
fn an_address_that_is_shared() {
    const UNBOUND: &str = r#", "bind_to_port": false"#;
    let mut stage = Stage::new(Dialect::Delta, USUAL, &[(CDS, "*"), (LDS, "*")]);
    for name in ["held", "other"] {
        stage.put(LDS, name, socket("0.0.0.0", 80, "", UNBOUND));
    }
    stage.pass(secs(10));
    stage.remove(LDS, "held");
    stage.restart();
    assert_eq!(stage.after(secs(10)).why(LDS, "held"), "mass");
    let changed = format!(r#"{UNBOUND}, "stat_prefix": "changed""#);
    stage.put(LDS, "other", socket("0.0.0.0", 80, "", &changed));
    assert_eq!(stage.after(ms(200)).served(LDS), "held other");
    // Another one that comes there does.
    stage.put(LDS, "third", socket("0.0.0.0", 80, "", UNBOUND));
    assert_eq!(stage.after(ms(200)).served(LDS), "other third");
}

/// Virtual hosts of different route configurations can have one domain.
#[test]
fn a_domain_of_another_route_configuration() {
    let host = |domain: &str| encoded(VHDS, &format!(r#""name": "x", "domains": ["{domain}"]"#));
    let wants = ["one/h", "two/h", "one/new"].map(|name| (VHDS, name));
    let mut stage = Stage::new(Dialect::Delta, USUAL, &wants);
    stage.put(VHDS, "one/h", host("a.example"));
    stage.put(VHDS, "two/h", host("a.example"));
    stage.pass(secs(20));
    stage.remove(VHDS, "one/h");
    stage.remove(VHDS, "two/h");
    stage.restart();
    assert_eq!(stage.after(secs(10)).served(VHDS), "one/h two/h");
    stage.put(VHDS, "one/new", host("a.example"));
    assert_eq!(stage.after(ms(200)).served(VHDS), "one/new two/h");
}
