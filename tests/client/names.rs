// SPDX-License-Identifier: Apache-2.0
//! Names of new style, and collections of them.

use xds::Dialect;

use crate::{CDS, EDS, Upstream, delta, ms, refusal, relay, resource, seconds, sotw};

const E: &str = "xdstp://a/envoy.config.endpoint.v3.ClusterLoadAssignment";
const C: &str = "xdstp://a/envoy.config.cluster.v3.Cluster";

/// Abbreviates the long beginnings of names to `E` and `C`.
fn short(text: &str) -> String {
    text.replace(E, "E").replace(C, "C")
}

fn long(text: &str) -> String {
    text.replace("C/", &format!("{C}/")).replace("E/", &format!("{E}/"))
}

impl Upstream {
    fn asks(&mut self) -> Vec<String> {
        self.sent().iter().map(|line| short(line)).collect()
    }

    fn knows(&self) -> String {
        short(&self.named(EDS))
    }

    /// A delta response about endpoints.
    fn hears_short(&mut self, nonce: &str, puts: &[&str], removed: &[&str]) {
        let resources = puts.iter().map(|put| {
            let (name, content) = put.rsplit_once('=').unwrap();
            resource(EDS, &long(name), content)
        });
        let mut response = delta(EDS, nonce, &[], &[]);
        response.resources = resources.collect();
        response.removed_resources = removed.iter().map(|name| long(name)).collect();
        self.hears(response);
    }

    fn accepts_short(&mut self, nonce: &str, puts: &[&str], removed: &[&str]) {
        self.hears_short(nonce, puts, removed);
        self.sent();
    }
}

fn asking(names: &[&str]) -> Upstream {
    let names: Vec<String> = names.iter().map(|name| long(name)).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    Upstream::streaming(Dialect::Delta, EDS, &names)
}

/// F-04, F-05, F-08: a name in any spelling of the server is the one that was asked for; with other parameters it is another
/// name.
#[test]
fn however_it_is_written() {
    let mut upstream = asking(&["E/x:y?a=1&b=2", "E/gone?a=1&b=2"]);
    upstream.hears_short(
        "n1",
        &["E/x%3Ay?b=2&a=1=1", "E/x:y?a=1=1", "E/x:y?a=1&b=2&c=3=1"],
        &["E/gone?b=2&a=1"],
    );
    assert_eq!(upstream.knows(), "E/gone?a=1&b=2:Said E/x:y?a=1&b=2=1");
    assert_eq!(upstream.asks(), ["eds ack n1"]);
}

/// E-12, F-04: two spellings of one name in one response are that name twice.
#[test]
fn one_name_twice() {
    let mut upstream = asking(&["E/x?a=1&b=2"]);
    upstream.hears_short("n1", &["E/x?b=2&a=1=1", "E/x?a=1&b=2=1"], &[]);
    assert_eq!(upstream.knows(), "");
    upstream.refuses("more than once");
}

/// F-02, F-03: a text that is no name of the form, or names another type, is a name like any other.
#[test]
fn any_text_is_a_name() {
    for bad in ["xdstp:x", &format!("{E}/x"), &format!("{C}/%zz")] {
        let mut upstream = Upstream::streaming(Dialect::Sotw, CDS, &["*"]);
        upstream.accepts_sotw(sotw(CDS, "1", "n1", &["a=1"]));
        upstream.hears_with(CDS, ("2", "n2"), &["b=1"], [resource(CDS, bad, "1")]);
        assert_eq!(upstream.wildcard(CDS), format!("b=1 {bad}=1 complete"));
        assert_eq!(upstream.asks(), ["cds [] v2 ack n2"]);
        let mut upstream = Upstream::streaming(Dialect::Delta, CDS, &[bad]);
        upstream.hears_with(CDS, ("", "n1"), &[], [resource(CDS, bad, "1")]);
        assert_eq!(upstream.named(CDS), format!("{bad}=1"));
    }
}

/// E-06, F-10: names and authorities that were not asked for are ignored.
#[test]
fn what_nobody_asked_for() {
    let mut upstream = asking(&["E/d/*?k=v"]);
    upstream.hears_short(
        "n1",
        &["E/d/x?k=v=1", "E/d/x=1", "E/d/e/x?k=v=1", "E/x?k=v=1", "d/x=1"],
        &["E/other", "E/e/*"],
    );
    let other = resource(EDS, &long("E/d/x?k=v").replace("//a/", "//b/"), "1");
    upstream.hears_with(EDS, ("", "n2"), &[], [other]);
    assert_eq!(upstream.knows(), "E/d/x?k=v=1");
    assert_eq!(upstream.asks(), ["eds ack n1", "eds ack n2"]);
}

/// C-22: a collection is complete after a moment of quiet, like a wildcard; only then are all its members known.
#[test]
fn quiet_makes_a_collection_whole() {
    let mut upstream = asking(&["E/d/*"]);
    assert!(!whole(&upstream));
    upstream.accepts_short("n1", &["E/d/x=1"], &[]);
    upstream.pass(ms(200));
    upstream.accepts_short("n2", &["E/d/y=1"], &[]);
    upstream.pass(ms(200));
    assert!(!whole(&upstream));
    upstream.pass(ms(100));
    assert!(whole(&upstream));
    assert_eq!(upstream.knows(), "E/d/x=1 E/d/y=1");
    upstream.hears_short("n3", &["E/d/x=2"], &["E/d/y"]);
    assert_eq!(upstream.knows(), "E/d/x=2");
    assert_eq!(upstream.after(ms(60_000)).knows(), "E/d/x=2");
}

/// C-22: another relay marks that more follows; the response that ends its answer may be of other names than the collection's.
#[test]
fn the_end_of_an_answer_of_another_relay() {
    let mut upstream = asking(&["E/d/*", "x"]);
    let say = |upstream: &mut Upstream, nonce: &str, put: &str| {
        let mut response = delta(EDS, nonce, &[&long(put)], &[]);
        response.control_plane = relay();
        upstream.accepts(response);
    };
    say(&mut upstream, "x-1+", "E/d/x=1");
    upstream.pass(ms(60_000));
    assert!(!whole(&upstream));
    say(&mut upstream, "x-2", "x=1");
    assert!(!whole(&upstream), "a relay may know more later");
    upstream.pass(ms(250));
    assert!(whole(&upstream));
}

/// C-22, E-07: the same for a collection in SotW from a server that need not send all of it at once; what the server leaves out
/// later means nothing, and what it adds is a member.
#[test]
fn quiet_makes_a_collection_whole_in_sotw() {
    let mut upstream = Upstream::streaming(Dialect::Sotw, EDS, &[&long("E/d/*")]);
    let say = |upstream: &mut Upstream, nonce: &str, puts: &[&str]| {
        let puts: Vec<String> = puts.iter().map(|put| long(put)).collect();
        let puts: Vec<&str> = puts.iter().map(String::as_str).collect();
        upstream.accepts_sotw(sotw(EDS, nonce, nonce, &puts));
    };
    say(&mut upstream, "1", &["E/d/x=1"]);
    upstream.pass(ms(200));
    say(&mut upstream, "2", &["E/d/y=1"]);
    upstream.pass(ms(200));
    assert!(!whole(&upstream));
    upstream.pass(ms(100));
    assert!(whole(&upstream));
    say(&mut upstream, "3", &["E/d/x=2", "E/d/z=1"]);
    assert_eq!(upstream.after(ms(60_000)).knows(), "E/d/x=2 E/d/y=1 E/d/z=1");
    upstream.reconnect();
    upstream.sent();
    upstream.pass(ms(60_000));
    assert!(whole(&upstream), "what was whole stays so");
}

fn whole(upstream: &Upstream) -> bool {
    is_whole(upstream, EDS, "E/d/*")
}

fn is_whole(upstream: &Upstream, type_url: &str, collection: &str) -> bool {
    let slot = upstream.cut.slot(&xds::TypeUrl::new(type_url));
    slot.is_some_and(|slot| slot.named.whole(&long(collection).as_str().into()))
}

/// C-22: an empty collection is removed by its own name, and so are all its members.
#[test]
fn an_empty_collection() {
    let mut upstream = asking(&["E/d/*"]);
    upstream.hears_short("n1", &[], &["E/d/*"]);
    assert!(whole(&upstream));
    upstream.hears_short("n2", &["E/d/x=1"], &[]);
    assert_eq!(upstream.knows(), "E/d/x=1");
    upstream.hears_short("n3", &[], &["E/d/*"]);
    assert_eq!(upstream.knows(), "");
    assert_eq!(upstream.after(ms(60_000)).knows(), "");
}

/// B-14, C-22: members go with their collection, unless they were asked for by themselves.
#[test]
fn giving_up() {
    let mut upstream = asking(&["E/d/*", "E/d/x"]);
    upstream.hears_short("n1", &["E/d/x=1", "E/d/y=1"], &[]);
    upstream.unwant(EDS, &long("E/d/*"));
    assert_eq!(upstream.knows(), "E/d/x=1");
    upstream.want(EDS, &long("E/d/*"));
    upstream.unwant(EDS, &long("E/d/x"));
    assert_eq!(upstream.knows(), "E/d/x=1");
    assert_eq!(upstream.asks(), ["eds ack n1", "eds -E/d/* -E/d/x", "eds +E/d/*"]);
    upstream.unwant(EDS, &long("E/d/*"));
    assert_eq!(upstream.knows(), "");
}

/// G-12, L-20: after another server stood in, no version of a member is declared, and what the server does not mention then is
/// gone after a longer quiet.
#[test]
fn another_server_has_stood_in() {
    let mut upstream = asking(&["E/d/*"]);
    upstream.accepts_short("n1", &["E/d/x=1", "E/d/y=1"], &[]);
    upstream.pass(ms(1000));
    upstream.disconnect();
    upstream.client.handle_superseded();
    upstream.connect();
    assert_eq!(upstream.asks(), ["eds +E/d/*"]);
    upstream.accepts_short("n1", &["E/d/x=1"], &[]);
    assert_eq!(upstream.after(ms(6_000)).knows(), "E/d/x=1");
}

/// E-08, G-12, K-16: the same if the server sends nothing for the collection, and only then: the collection is then not known as
/// a whole.
#[test]
fn another_server_has_stood_in_and_nothing_is_left() {
    let mut upstream = asking(&["E/d/*", "E/d/x"]);
    upstream.accepts_short("n1", &["E/d/x=1", "E/d/y=1"], &[]);
    upstream.pass(ms(1000));
    upstream.disconnect();
    upstream.client.handle_superseded();
    upstream.connect();
    assert_eq!(upstream.asks(), ["eds +E/d/* +E/d/x"]);
    assert_eq!(upstream.after(ms(14_999)).knows(), "E/d/x=1 E/d/y=1");
    assert_eq!(upstream.after(ms(1)).knows(), "E/d/*:TimedOut E/d/x:TimedOut");
    assert!(!whole(&upstream));
    upstream.accepts_short("n1", &["E/d/z=1"], &[]);
    assert_eq!(upstream.after(ms(1000)).knows(), "E/d/x:TimedOut E/d/z=1");
    assert!(whole(&upstream));
}

/// E-08, K-16: a member that was requested by name on an earlier stream, and whose collection was never answered, is not declared. If the
/// server then sends nothing for the collection, the member does not exist there any more.
#[test]
fn a_member_from_before_its_collection() {
    let mut upstream = asking(&["E/d/x"]);
    upstream.accepts_short("n1", &["E/d/x=1"], &[]);
    upstream.disconnect();
    upstream.want(EDS, &long("E/d/*"));
    upstream.unwant(EDS, &long("E/d/x"));
    upstream.connect();
    assert_eq!(upstream.asks(), ["eds +E/d/*"]);
    assert_eq!(upstream.after(ms(14_999)).knows(), "E/d/x=1");
    assert_eq!(upstream.after(ms(1)).knows(), "E/d/*:TimedOut");
}

/// E-08, K-16: a member that the server was not told of is waited for when it is asked for by itself. It does not answer for its
/// collection. If the server sends nothing, neither exists.
#[test]
fn an_undeclared_member_asked_for_by_itself() {
    let mut upstream = asking(&["E/d/*"]);
    upstream.accepts_short("n1", &["E/d/x=1"], &[]);
    upstream.reconnect();
    assert_eq!(upstream.asks(), ["eds +E/d/*"]);
    upstream.pass(ms(1_000));
    upstream.want(EDS, &long("E/d/x"));
    assert_eq!(upstream.asks(), ["eds +E/d/x"]);
    assert_eq!(upstream.after(ms(14_000)).knows(), "E/d/*:TimedOut E/d/x=1");
    assert_eq!(upstream.after(ms(1_000)).knows(), "E/d/*:TimedOut E/d/x:TimedOut");
    upstream.accepts_short("n2", &["E/d/x=1"], &[]);
    assert_eq!(upstream.after(ms(1_000)).knows(), "E/d/x=1");
}

/// E-04, G-19: a name that is asked for by itself after a reconnect is sent, although the relay declared it: that is no proof
/// that the server ignores declarations, even if the name is no longer wanted by then, or was asked for under another name.
#[test]
fn a_member_asked_for_by_itself_after_a_reconnect() {
    let reconnected = || {
        let mut upstream = asking(&["E/d/*"]);
        upstream.accepts_short("n1", &["E/d/a=1", "E/d/x=1", "E/d/y=1", "E/d/z=1"], &[]);
        upstream.pass(ms(1000));
        upstream.reconnect();
        assert_eq!(upstream.asks(), ["eds +E/d/* E/d/a@unknown E/d/x@1 E/d/y@1 E/d/z@1"]);
        upstream
    };
    let ways = [("E/d/x", false), ("E/d/x", true), ("E/d/alias", false)];
    for ((name, given_up), proof) in ways.into_iter().flat_map(|way| [(way, false), (way, true)]) {
        let mut upstream = reconnected();
        upstream.want(EDS, &long(name));
        assert_eq!(upstream.asks(), [format!("eds +{name}")]);
        if given_up {
            upstream.unwant(EDS, &long(name));
        }
        let mut member = resource(EDS, &long("E/d/x"), "1");
        member.aliases = vec![long("E/d/alias")];
        upstream.hears_with(EDS, ("", "m1"), &[], [member]);
        upstream.sent();
        // A resource that was declared and not asked for by itself is such a proof.
        if proof {
            upstream.accepts_short("m2", &["E/d/y=1"], &[]);
        }
        upstream.pass(ms(60_000));
        let rest = if proof {
            "E/d/x=1 E/d/y=1"
        } else {
            "E/d/x=1 E/d/y=1 E/d/z=1"
        };
        let held = upstream.knows().replace("E/d/alias=1 ", "");
        assert_eq!(held, rest, "{name} {given_up}");
    }
}

/// E-07, E-11: in SotW members come and go by the rules of their type, and a time to live ends a member.
#[test]
fn in_sotw() {
    let mut upstream = Upstream::streaming(Dialect::Sotw, CDS, &[&long("C/d/*")]);
    let member = |name: &str, ttl: Option<i64>| {
        let mut member = resource(CDS, &long(name), "1");
        member.ttl = ttl.and_then(seconds);
        member
    };
    let members = [member("C/d/x", None), member("C/d/y", Some(10))];
    upstream.hears_with(CDS, ("1", "n1"), &[], members.clone());
    assert_eq!(short(&upstream.named(CDS)), "C/d/x=1 C/d/y=1");
    upstream.pass(ms(10_000));
    assert_eq!(short(&upstream.named(CDS)), "C/d/x=1");
    upstream.hears_with(CDS, ("1", "n1"), &[], members.into_iter().skip(1));
    assert_eq!(short(&upstream.named(CDS)), "C/d/y=1");
}

/// C-22, E-07: a full state answers for a collection whose members it leaves out, as for one whose members it lists.
#[test]
fn left_out_of_a_full_state() {
    let mut upstream = Upstream::streaming(Dialect::Sotw, CDS, &[&long("C/d/*")]);
    // It is unknown which of two entries is meant, so that this is not everything.
    let doubtful = ["C/d/x=1", "C/d/y=1", "C/d/y=2"].map(long);
    upstream.hears_sotw(sotw(CDS, "1", "n1", &doubtful.each_ref().map(String::as_str)));
    assert_eq!(short(&upstream.named(CDS)), "C/d/x=1");
    assert!(!is_whole(&upstream, CDS, "C/d/*"));
    upstream.hears_sotw(sotw(CDS, "2", "n2", &[]));
    assert_eq!(short(&upstream.named(CDS)), "");
    assert!(is_whole(&upstream, CDS, "C/d/*"));
}

/// F-14, A-07, A-08: an empty collection is a resource like any other, and the relay never looks at what a resource refers to.
#[test]
fn bodies_are_opaque() {
    const LIST: &str = "type.googleapis.com/envoy.config.endpoint.v3.LbEndpointCollection";
    for content in [&b""[..], b"\x0a\x03abc\x0a\x02de", b"\xff\xff"] {
        for dialect in [Dialect::Delta, Dialect::Sotw] {
            let name = "xdstp://a/envoy.config.endpoint.v3.LbEndpointCollection/zone";
            let mut upstream = Upstream::streaming(dialect, LIST, &[name]);
            let mut list = resource(LIST, name, "1");
            list.resource = Some(proto::google::protobuf::Any {
                type_url: LIST.to_owned(),
                value: content.into(),
            });
            upstream.hears_with(LIST, ("1", "n1"), &[], [list]);
            let slot = upstream.cut.slot(&xds::TypeUrl::new(LIST)).unwrap();
            let held = slot.named.resource(&name.into()).unwrap();
            assert_eq!(held.body(), content);
            assert!(refusal(&mut upstream).is_empty());
        }
    }
}
