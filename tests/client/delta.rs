// SPDX-License-Identifier: Apache-2.0
//! The delta dialect.

use proto::envoy::service::discovery::v3::DeltaDiscoveryResponse;
use protocol::Request;
use xds::{Dialect, Name, TypeUrl};

use crate::{CDS, EDS, RDS, Upstream, VHDS, delta, ms, relay, resource, seconds};

/// E-20, A-04: the wildcard is asked for by a first request without names, where the type allows that, else by its name.
#[test]
fn the_wildcard_is_asked_for_in_the_oldest_way() {
    let mut upstream = Upstream::new(Dialect::Delta);
    upstream.want(CDS, "*");
    upstream.want(EDS, "*");
    upstream.connect();
    assert_eq!(upstream.sent(), ["cds", "eds +*"]);
}

/// E-16, E-02, D-08: the acknowledgement goes first and alone, then the change.
#[test]
fn an_answer_never_shares_a_request_with_a_change() {
    let mut upstream = Upstream::streaming(Dialect::Delta, EDS, &["a"]);
    upstream.want(RDS, "r");
    upstream.want(EDS, "b");
    upstream.hears(delta(EDS, "n1", &["a=1"], &[]));
    assert_eq!(upstream.sent(), ["eds ack n1", "eds +b", "rds +r"]);
    assert_eq!(upstream.named(EDS), "a=1");
}

/// E-02: every response is acknowledged or rejected, even if several came before the transport took a request.
#[test]
fn every_delta_response_is_answered() {
    let mut upstream = Upstream::streaming(Dialect::Delta, EDS, &["a"]);
    for nonce in ["n1", "n2", "n3"] {
        upstream.hears(delta(EDS, nonce, &[&format!("a={nonce}")], &[]));
    }
    assert_eq!(upstream.sent(), ["eds ack n1", "eds ack n2", "eds ack n3"]);
    assert_eq!(upstream.named(EDS), "a=n3");
}

/// E-21: while the transport takes nothing, requests do not queue up: a want that came and went meanwhile leaves no trace.
#[test]
fn the_latest_interest_wins() {
    let mut upstream = Upstream::streaming(Dialect::Delta, EDS, &["a"]);
    for round in 0..100 {
        upstream.want(EDS, &format!("x{round}"));
        upstream.unwant(EDS, &format!("x{round}"));
    }
    upstream.want(EDS, "b");
    assert_eq!(upstream.sent(), ["eds +b"]);
}

/// E-16, E-17: a name that is wanted again before the server was told of the end is unsubscribed and subscribed in two requests,
/// and what comes for the old subscription does not count.
#[test]
fn a_name_wanted_anew_is_asked_for_anew() {
    let mut upstream = Upstream::streaming(Dialect::Delta, EDS, &["a", "b"]);
    upstream.accepts(delta(EDS, "n1", &["a=1", "b=1"], &[]));
    upstream.unwant(EDS, "a");
    assert_eq!(upstream.named(EDS), "b=1");
    upstream.want(EDS, "a");
    upstream.hears(delta(EDS, "n2", &["a=old"], &[]));
    assert_eq!(upstream.named(EDS), "b=1");
    assert_eq!(upstream.sent(), ["eds ack n2", "eds -a", "eds +a"]);
    upstream.hears(delta(EDS, "n3", &["a=2"], &[]));
    assert_eq!(upstream.named(EDS), "a=2 b=1");
}

/// L-14, K-15: the server reports that a name does not exist; later it exists, without a new request.
#[test]
fn missing_then_created() {
    let mut upstream = Upstream::streaming(Dialect::Delta, RDS, &["ghost"]);
    upstream.hears(delta(RDS, "n1", &[], &["ghost"]));
    assert_eq!(upstream.named(RDS), "ghost:Said");
    upstream.sent();
    upstream.hears(delta(RDS, "n2", &["ghost=1"], &[]));
    assert_eq!(upstream.named(RDS), "ghost=1");
    assert_eq!(upstream.sent(), ["rds ack n2"]);
}

/// C-16, E-08: the relay waits 15 s, from its request, for a server that never reports missing names.
#[test]
fn a_silent_server_is_given_fifteen_seconds() {
    let mut upstream = Upstream::new(Dialect::Delta);
    upstream.want(RDS, "ghost");
    upstream.connect();
    // The transport takes nothing for a long time: nothing was asked, so nothing counts as missing (L-22b).
    assert_eq!(upstream.after(ms(20_000)).named(RDS), "");
    upstream.sent();
    assert_eq!(upstream.after(ms(14_999)).named(RDS), "");
    assert_eq!(upstream.after(ms(1)).named(RDS), "ghost:TimedOut");
}

/// E-05: a response of a type that was never asked for on this stream is neither acknowledged nor rejected.
#[test]
fn a_type_never_asked_for_is_ignored() {
    let mut upstream = Upstream::streaming(Dialect::Delta, EDS, &["a"]);
    upstream.news();
    upstream.hears(delta(CDS, "n1", &["c=1"], &[]));
    assert_eq!(upstream.sent(), [""; 0]);
    assert_eq!(upstream.news(), 0);
}

/// K-22, K-09: content that comes again unchanged is no change, and wakes no session.
#[test]
fn equal_content_is_no_news() {
    let mut upstream = Upstream::streaming(Dialect::Delta, EDS, &["a"]);
    upstream.accepts(delta(EDS, "n1", &["a=1"], &[]));
    upstream.news();
    let before = upstream.cut.slot(&TypeUrl::new(EDS)).unwrap().named.clone();
    for round in 0..1000 {
        upstream.hears(delta(EDS, &format!("m{round}"), &["a=1"], &[]));
        assert_eq!(upstream.sent(), [format!("eds ack m{round}")]);
    }
    assert_eq!(upstream.news(), 0);
    assert_eq!(before.id(), upstream.cut.slot(&TypeUrl::new(EDS)).unwrap().named.id());
}

/// C-20, C-21: a virtual host is asked for by one of its names, and answers to its other names.
#[test]
fn a_resource_answers_to_its_aliases() {
    let mut upstream = Upstream::streaming(Dialect::Delta, VHDS, &["rc/host.x", "rc/host.y"]);
    let mut host = resource(VHDS, "rc/hosts", "1");
    host.aliases = vec!["rc/host.y".to_owned(), "rc/host.x".to_owned()];
    upstream.hears_with(VHDS, ("", "n1"), &[], [host.clone()]);
    assert_eq!(upstream.named(VHDS), "rc/hosts=1");
    upstream.pass(ms(60_000));
    assert_eq!(upstream.named(VHDS), "rc/hosts=1", "both names were answered");

    // It loses one: the relay waits for that one like for a new name.
    host.aliases.pop();
    upstream.hears_with(VHDS, ("", "n2"), &[], [host]);
    assert_eq!(upstream.after(ms(15_000)).named(VHDS), "rc/host.x:TimedOut rc/hosts=1");
    // No session wants the other any more, so nothing holds the resource.
    upstream.unwant(VHDS, "rc/host.y");
    assert_eq!(upstream.named(VHDS), "rc/host.x:TimedOut");
}

/// C-21, E-10: an entry without a body means that a virtual host does not exist; it is no heartbeat.
#[test]
fn a_virtual_host_without_a_body_does_not_exist() {
    let mut upstream = Upstream::streaming(Dialect::Delta, VHDS, &["rc/host.x"]);
    let mut host = resource(VHDS, "rc/host.x", "1");
    host.aliases = vec!["rc/host.x".to_owned()];
    host.resource = None;
    upstream.hears_with(VHDS, ("", "n1"), &[], [host]);
    assert_eq!(upstream.named(VHDS), "rc/host.x:Said");
    assert_eq!(upstream.sent(), ["vhds ack n1"]);
}

/// L-24, E-11, K-17, E-10: a time to live ends at its deadline, a heartbeat moves it, and both survive the stream.
#[test]
fn a_time_to_live() {
    let mut upstream = Upstream::streaming(Dialect::Delta, EDS, &["x"]);
    let mut x = resource(EDS, "x", "1");
    x.ttl = seconds(10);
    let expiry = |upstream: &Upstream| {
        let slot = upstream.cut.slot(&TypeUrl::new(EDS)).unwrap();
        slot.named.expiry(&"x".into()).unwrap()
    };
    upstream.hears_with(EDS, ("", "n1"), &[], [x.clone()]);
    let first = expiry(&upstream);
    assert_eq!(first.at, upstream.now + ms(10_000));

    upstream.pass(ms(8_000));
    x.resource = None;
    upstream.hears_with(EDS, ("", "n2"), &[], [x]);
    let second = expiry(&upstream);
    assert_eq!(second.at, upstream.now + ms(10_000));
    assert_ne!(first.beat, second.beat);

    upstream.disconnect();
    assert_eq!(upstream.after(ms(9_999)).named(EDS), "x=1");
    assert_eq!(upstream.after(ms(1)).named(EDS), "x:Expired");
}

/// E-11: a resource that comes without a ttl loses its deadline; a ttl of zero ends it at once.
#[test]
fn a_time_to_live_is_taken_away() {
    let mut upstream = Upstream::streaming(Dialect::Delta, EDS, &["x"]);
    let mut response = delta(EDS, "n1", &["x=1"], &[]);
    response.resources[0].ttl = seconds(10);
    upstream.hears(response);
    upstream.hears(delta(EDS, "n2", &["x=1"], &[]));
    assert_eq!(upstream.after(ms(60_000)).named(EDS), "x=1");
    let mut response = delta(EDS, "n3", &["x=1"], &[]);
    response.resources[0].ttl = seconds(0);
    upstream.hears(response);
    assert_eq!(upstream.named(EDS), "x:Expired");
}

/// K-13: the name under which a cluster takes its endpoints is read when it comes in.
#[test]
fn a_cluster_names_its_endpoints() {
    use prost::Message;
    use proto::envoy::config::cluster::v3::{Cluster, cluster};
    let mut upstream = Upstream::streaming(Dialect::Delta, CDS, &["*"]);
    let cluster = |name: &str, kind, service: &str| {
        let cluster = Cluster {
            name: name.to_owned(),
            r#type: i32::from(kind),
            eds_cluster_config: Some(cluster::EdsClusterConfig {
                service_name: service.to_owned(),
            }),
        };
        let mut resource = resource(CDS, name, "1");
        resource.resource.as_mut().unwrap().value = cluster.encode_to_vec().into();
        resource
    };
    let clusters = [
        cluster("own", cluster::DiscoveryType::Eds, ""),
        cluster("service", cluster::DiscoveryType::Eds, "s"),
        cluster("static", cluster::DiscoveryType::Static, "s"),
    ];
    upstream.hears_with(CDS, ("", "n1"), &[], clusters);
    let slot = upstream.cut.slot(&TypeUrl::new(CDS)).unwrap().wildcard.clone().unwrap();
    let endpoints = |name: &str| {
        slot.resource(&name.into())
            .unwrap()
            .endpoints()
            .map(ToString::to_string)
    };
    assert_eq!(endpoints("own").as_deref(), Some("own"));
    assert_eq!(endpoints("service").as_deref(), Some("s"));
    assert_eq!(endpoints("static"), None);
}

/// A-11: a million names go out in requests that every server can read, each name once.
#[test]
fn very_many_names_are_asked_for_in_portions() {
    let mut upstream = Upstream::new(Dialect::Delta);
    for number in 0..100_000 {
        upstream.want(EDS, &format!("a-name-of-forty-characters-or-so-{number:08}"));
    }
    upstream.connect();
    let mut asked = 0;
    let mut requests = 0;
    while let Some(Request::Delta(request)) = upstream.client.poll_request(upstream.now) {
        asked += request.resource_names_subscribe.len();
        requests += 1;
        assert!(prost::Message::encoded_len(&request) < 2 * 1024 * 1024);
    }
    assert_eq!(asked, 100_000);
    assert!(requests > 1);
}

/// C-20, E-12: a response gives a name to one resource as an alias and removes that name: the removal is of the resource that had
/// it as its own name, if there was one; the new resource stays.
#[test]
fn a_name_becomes_an_alias() {
    for held in [false, true] {
        let mut upstream = Upstream::streaming(Dialect::Delta, EDS, &["a", "b"]);
        if held {
            upstream.hears(delta(EDS, "n0", &["a=0"], &[]));
            assert_eq!(upstream.named(EDS), "a=0");
        }
        let mut response = delta(EDS, "n1", &["b=1"], &["a"]);
        for resource in &mut response.resources {
            resource.aliases = vec!["a".to_owned()];
        }
        upstream.hears(response);
        let slot = upstream.cut.slot(&TypeUrl::new(EDS)).unwrap();
        for name in ["a", "b"] {
            let found = slot
                .named
                .resource(&Name::from(name))
                .map(|found| found.name().as_str());
            assert_eq!(found, Some("b"), "{name}, held before: {held}");
        }
        upstream.hears(delta(EDS, "n2", &[], &["a"]));
        assert!(
            upstream.named(EDS).contains("b:Said"),
            "an alias is removed with what has it"
        );
    }
}

/// E-04, E-08: what is held by an alias is not declared on a new stream, so the relay waits for the alias. If the next stream
/// declares it, because it is also asked for by its own name, silence means that the alias is unchanged.
#[test]
fn what_is_declared_is_not_waited_for() {
    let mut upstream = Upstream::streaming(Dialect::Delta, EDS, &["z"]);
    let mut answer = delta(EDS, "n1", &["a=1"], &[]);
    answer
        .resources
        .iter_mut()
        .for_each(|resource| resource.aliases = vec!["z".to_owned()]);
    upstream.accepts(answer);
    upstream.reconnect();
    assert_eq!(upstream.sent(), ["eds +z"]);
    upstream.want(EDS, "a");
    upstream.reconnect();
    assert_eq!(upstream.sent(), ["eds +a +z a@unknown"]);
    assert_eq!(upstream.after(ms(20_000)).named(EDS), "a=1");
}

/// E-04, C-13: a server that sends what the relay brought unchanged does not read what is brought, and never names what is gone: what its
/// first answer does not list is gone after a quiet time. One that reads it, and sends again only what was brought with a version that it
/// does not know, has said that nothing else has changed. Another relay always reads it, whatever it sends again.
#[test]
fn names_that_a_server_leaves_out() {
    for (reads, is_relay) in [(true, false), (false, false), (false, true)] {
        let said = |nonce, puts: &[&str]| DeltaDiscoveryResponse {
            control_plane: relay().filter(|_| is_relay),
            ..delta(EDS, nonce, puts, &[])
        };
        let mut upstream = Upstream::streaming(Dialect::Delta, EDS, &["a", "b", "c", "gone"]);
        upstream.hears(delta(EDS, "n1", &["a=1", "b=1", "c=1", "gone=1"], &[]));
        upstream.reconnect();
        assert_eq!(upstream.sent(), ["eds +a +b +c +gone a@unknown b@1 c@1 gone@1"]);
        upstream.hears(said("m1", &["a=1"]));
        if !reads {
            upstream.hears(said("m2", &["b=1", "c=2"]));
        }
        upstream.sent();
        upstream.pass(ms(4999));
        let c = if reads { "c=1" } else { "c=2" };
        assert_eq!(upstream.named(EDS), format!("a=1 b=1 {c} gone=1"));
        upstream.pass(ms(60_000));
        let rest = if reads || is_relay { "gone=1" } else { "gone:Said" };
        assert_eq!(upstream.named(EDS), format!("a=1 b=1 {c} {rest}"));
    }
}
