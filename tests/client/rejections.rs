// SPDX-License-Identifier: Apache-2.0
//! E-24: the control plane is told what clients reject.

use std::sync::Arc;

use proto::google::rpc::Status;
use protocol::Request;
use xds::{Dialect, Name, Objection, Rejection, TypeUrl, Version};

use crate::{CDS, EDS, Upstream, delta, ms, resource, sotw};

/// What so many of 41 Envoys reject of a name, as it is known now.
pub(crate) fn rejects(upstream: &Upstream, type_url: &str, name: &str, clients: usize) -> Rejection {
    rejects_with(upstream, type_url, name, clients, "no")
}

fn rejects_with(upstream: &Upstream, type_url: &str, name: &str, clients: usize, words: &str) -> Rejection {
    let (name, version) = content(upstream, type_url, name);
    Rejection {
        content: Some((name, version)),
        kind: "envoy 1.36.4".into(),
        clients,
        of: 41,
        objection: Arc::new(Objection::new(13, words, upstream.now)),
    }
}

fn content(upstream: &Upstream, type_url: &str, name: &str) -> (Name, Version) {
    let type_url = TypeUrl::new(type_url);
    let slot = upstream.cut.slot(&type_url).unwrap();
    let name = Name::read(name, &type_url);
    let whole = slot.wildcard.as_ref().and_then(|state| state.resource(&name));
    let found = whole.or_else(|| slot.named.resource(&name)).unwrap();
    (name, found.version())
}

impl Upstream {
    /// A client rejects something; the time to gather passes, and the clients answer.
    pub(crate) fn hears_rejections(&mut self, type_url: &str, rejections: &[Rejection]) {
        self.client.handle_rejected(&TypeUrl::new(type_url), self.now);
        self.pass(ms(250));
        self.answers_with(type_url, rejections);
    }

    /// The clients are asked now, and answer.
    fn answers_with(&mut self, type_url: &str, rejections: &[Rejection]) {
        let type_url = TypeUrl::new(type_url);
        let asked: Vec<TypeUrl> = self.client.take_questions().into_iter().collect();
        assert_eq!(asked, std::slice::from_ref(&type_url), "the clients are asked");
        self.client.handle_rejections(&type_url, rejections);
    }

    /// The next request, which must be the only one, and its error.
    fn told(&mut self) -> (Request, Status) {
        let request = self.client.poll_request(self.now).unwrap();
        assert_eq!(self.client.poll_request(self.now), None);
        let error = match &request {
            Request::Sotw(request) => request.error_detail.clone(),
            Request::Delta(request) => request.error_detail.clone(),
        };
        let error = error.unwrap();
        (request, error)
    }

    fn message(&mut self) -> String {
        self.told().1.message
    }

    /// Hears `a` in this content, with that as its version and its nonce.
    fn hears_a(&mut self, version: &str) {
        let put = format!("a={version}");
        self.hears_puts(CDS, version, version, &[&put]);
    }
}

/// A machine that has acknowledged `a`.
fn with_a(dialect: Dialect) -> Upstream {
    let mut upstream = Upstream::streaming(dialect, CDS, &["a"]);
    upstream.hears_a("1");
    assert_eq!(upstream.sent().len(), 1, "the acknowledgement");
    upstream
}

/// The form that makes no known server send anything again: in SotW the version and the nonce of the last response, and the names of the
/// last request; in delta the nonce; no node.
#[test]
fn the_form() {
    let mut upstream = with_a(Dialect::Sotw);
    upstream.hears_rejections(CDS, &[rejects(&upstream, CDS, "a", 2)]);
    let (request, error) = upstream.told();
    let words = "2 of 41 clients (envoy 1.36.4) reject cluster a: no";
    assert_eq!((error.code, error.message.as_str()), (13, words));
    let Request::Sotw(request) = request else {
        unreachable!()
    };
    assert_eq!(request.resource_names, ["a"]);
    assert_eq!(request.version_info, "1");
    assert_eq!(request.response_nonce, "1");
    assert_eq!((request.type_url.as_str(), request.node), (CDS, None));

    let mut upstream = with_a(Dialect::Delta);
    upstream.hears_rejections(CDS, &[rejects(&upstream, CDS, "a", 1)]);
    let (request, error) = upstream.told();
    assert_eq!(error.message, "1 of 41 clients (envoy 1.36.4) rejects cluster a: no");
    let Request::Delta(request) = request else {
        unreachable!()
    };
    let expected = proto::envoy::service::discovery::v3::DeltaDiscoveryRequest {
        type_url: CDS.to_owned(),
        response_nonce: "1".to_owned(),
        error_detail: Some(error),
        ..Default::default()
    };
    assert_eq!(request, expected);
}

/// A wildcard that was asked for by an empty list stays an empty list.
#[test]
fn the_wildcard_keeps_its_form() {
    let mut upstream = Upstream::streaming(Dialect::Sotw, CDS, &["*"]);
    upstream.accepts_sotw(sotw(CDS, "1", "n", &["a=1"]));
    upstream.hears_rejections(CDS, &[rejects(&upstream, CDS, "a", 1)]);
    assert_eq!(upstream.sent(), ["cds [] v1 nack n"]);
}

/// Before the first response of the type, and while a response is not acknowledged, nothing is asked or said; a change of names goes
/// first, in a request of its own.
#[test]
fn when_it_is_not_said() {
    for dialect in [Dialect::Sotw, Dialect::Delta] {
        let mut upstream = Upstream::streaming(dialect, CDS, &["a"]);
        upstream.client.handle_rejected(&TypeUrl::new(CDS), upstream.now);
        upstream.pass(ms(10_000));
        assert!(upstream.client.take_questions().is_empty(), "before the first response");
        upstream.hears_a("1");
        upstream.pass(ms(1000));
        assert!(
            upstream.client.take_questions().is_empty(),
            "before the acknowledgement"
        );
        assert_eq!(upstream.sent().len(), 1);
        upstream.pass(ms(0));
        let one = rejects(&upstream, CDS, "a", 2);
        upstream.answers_with(CDS, std::slice::from_ref(&one));
        upstream.want(CDS, "b");
        let lines = upstream.sent();
        let expected = match dialect {
            Dialect::Sotw => ["cds [a b] v1 ack 1", "cds [a b] v1 nack 1"],
            Dialect::Delta => ["cds +b", "cds nack 1"],
        };
        assert_eq!(lines, expected);
    }
}

/// A response that comes before it is said: the newer nonce, or nothing if the content has changed in it.
#[test]
fn a_newer_response() {
    for dialect in [Dialect::Sotw, Dialect::Delta] {
        for repaired in [false, true] {
            let mut upstream = with_a(dialect);
            upstream.hears_rejections(CDS, &[rejects(&upstream, CDS, "a", 2)]);
            match (dialect, repaired) {
                (Dialect::Sotw, false) => upstream.hears_sotw(sotw(CDS, "2", "2", &["a=1"])),
                (Dialect::Delta, false) => upstream.hears(delta(CDS, "2", &[], &["b"])),
                (_, true) => upstream.hears_a("2"),
            }
            let lines = upstream.sent();
            let ack = if dialect == Dialect::Sotw {
                "cds [a] v2 ack 2"
            } else {
                "cds ack 2"
            };
            let nack = ack.replace("ack", "nack");
            let expected: Vec<&str> = if repaired { vec![ack] } else { vec![ack, &nack] };
            assert_eq!(lines, expected);
        }
    }
}

/// A response that the relay itself refuses leaves nothing acknowledged that could be named.
#[test]
fn after_a_refusal_of_our_own() {
    for dialect in [Dialect::Sotw, Dialect::Delta] {
        let mut upstream = with_a(dialect);
        let mut faulty = resource(CDS, "a", "2");
        faulty.resource.as_mut().unwrap().type_url = EDS.to_owned();
        upstream.hears_with(CDS, ("2", "2"), &[], [faulty]);
        assert!(upstream.sent()[0].ends_with("nack 2"));
        upstream.client.handle_rejected(&TypeUrl::new(CDS), upstream.now);
        assert!(upstream.after(ms(10_000)).client.take_questions().is_empty());
        upstream.hears_a("3");
        assert_eq!(upstream.sent().len(), 1);
        upstream.pass(ms(0));
        let one = rejects(&upstream, CDS, "a", 1);
        upstream.answers_with(CDS, &[one]);
        assert!(upstream.sent()[0].ends_with("nack 3"));
    }
}

/// Once for each content and kind; again when ten times as many reject it, or when the content is another.
#[test]
fn it_is_said_once() {
    let mut upstream = with_a(Dialect::Delta);
    let said = |upstream: &mut Upstream, clients: usize, kind: &str| {
        let mut one = rejects(upstream, CDS, "a", clients);
        one.kind = kind.into();
        upstream.pass(ms(5000));
        upstream.hears_rejections(CDS, &[one]);
        upstream.sent().len()
    };
    assert_eq!(said(&mut upstream, 2, "envoy 1.36.4"), 1);
    assert_eq!(said(&mut upstream, 2, "envoy 1.36.4"), 0);
    assert_eq!(said(&mut upstream, 19, "envoy 1.36.4"), 0);
    assert_eq!(said(&mut upstream, 20, "envoy 1.36.4"), 1);
    assert_eq!(said(&mut upstream, 1, "envoy 1.37.0"), 1);
    upstream.hears_a("2");
    assert_eq!(upstream.sent(), ["cds ack 2"]);
    assert_eq!(said(&mut upstream, 1, "envoy 1.36.4"), 1);
    // Nobody rejects anything any more.
    upstream.pass(ms(5000));
    upstream.hears_rejections(CDS, &[]);
    assert!(upstream.sent().is_empty());
}

/// E-24: a storm of rejections of ever new contents takes two requests in ten seconds, and what was not said is not queued.
#[test]
fn a_storm() {
    for dialect in [Dialect::Sotw, Dialect::Delta] {
        let mut upstream = with_a(dialect);
        let (mut questions, mut reports) = (0, Vec::new());
        for round in 2..=1000_u32 {
            upstream.hears_a(&round.to_string());
            let acks = upstream.sent();
            reports.extend(acks.iter().filter(|line| line.contains("nack")).map(|_| upstream.now));
            assert!(
                acks[0].contains(" ack "),
                "an acknowledgement waits for nothing: {acks:?}"
            );
            upstream.client.handle_rejected(&TypeUrl::new(CDS), upstream.now);
            upstream.pass(ms(20));
            for type_url in upstream.client.take_questions() {
                questions += 1;
                let one = rejects(&upstream, CDS, "a", 3);
                upstream.client.handle_rejections(&type_url, &[one]);
            }
            reports.extend(upstream.sent().iter().map(|_| upstream.now));
        }
        assert!((3..=5).contains(&reports.len()), "in twenty seconds: {}", reports.len());
        assert!(
            reports.windows(2).all(|pair| pair[1] - pair[0] >= ms(5000)),
            "{reports:?}"
        );
        assert!(questions <= 20, "{questions}");
    }
}

/// On a new stream it is said once more, after the first acknowledgement, if the clients still reject it.
#[test]
fn a_new_stream() {
    for (dialect, holds) in [
        (Dialect::Sotw, true),
        (Dialect::Delta, true),
        (Dialect::Sotw, false),
        (Dialect::Delta, false),
    ] {
        let mut upstream = with_a(dialect);
        let one = rejects(&upstream, CDS, "a", 2);
        upstream.hears_rejections(CDS, std::slice::from_ref(&one));
        assert_eq!(upstream.sent().len(), 1);
        upstream.disconnect();
        upstream.pass(ms(10_000));
        upstream.connect();
        assert_eq!(upstream.sent().len(), 1, "the subscription");
        assert!(upstream.after(ms(1000)).client.take_questions().is_empty());
        upstream.hears_a("1");
        assert_eq!(upstream.sent().len(), 1, "the acknowledgement");
        upstream.pass(ms(0));
        upstream.answers_with(CDS, if holds { std::slice::from_ref(&one) } else { &[] });
        assert_eq!(upstream.sent().len(), usize::from(holds));
        assert!(upstream.after(ms(60_000)).sent().is_empty() && upstream.client.take_questions().is_empty());
    }
}

/// The text: words are cut and harmless, at most eight contents are named, and a code of 0 is replaced.
#[test]
fn the_text() {
    let mut upstream = Upstream::streaming(Dialect::Delta, CDS, &["*"]);
    let puts: Vec<String> = (0..12).map(|n| format!("c{n}=1")).collect();
    let puts: Vec<&str> = puts.iter().map(String::as_str).collect();
    upstream.accepts(delta(CDS, "1", &puts, &[]));
    let all: Vec<Rejection> = (0..12).map(|n| rejects(&upstream, CDS, &format!("c{n}"), 2)).collect();
    upstream.hears_rejections(CDS, &all);
    let expected = "2 of 41 clients (envoy 1.36.4) reject clusters c0, c1, c2, c3, c4, c5, c6, c7: no; and 4 more";
    assert_eq!(upstream.message(), expected);

    let mut long = rejects_with(&upstream, CDS, "c0", 1, &format!("\u{1b}[31m\n{}", "ä".repeat(40_000)));
    long.kind = "another".into();
    long.objection = Arc::new(Objection::new(0, long.objection.words(), upstream.now));
    let mut other = rejects(&upstream, CDS, "c1", 3);
    (other.kind, other.of) = ("another".into(), 3);
    upstream.pass(ms(5000));
    upstream.hears_rejections(CDS, &[long, other]);
    let (_, Status { code, message, .. }) = upstream.told();
    assert_eq!(code, 13);
    assert!(message.len() < 1300 && !message.contains(['\n', '\u{1b}']), "{message}");
    assert!(
        message.contains("3 of 3 clients (another) reject cluster c1: no"),
        "{message}"
    );
}

/// What a relay says of its clients is passed on once for each of its texts, within a bound.
#[test]
fn a_relay_below() {
    let mut upstream = with_a(Dialect::Delta);
    let relayed = |upstream: &Upstream, words: &str| Rejection {
        content: None,
        kind: "distributary 0.1.0".into(),
        of: 1,
        ..rejects_with(upstream, CDS, "a", 1, words)
    };
    let one = relayed(&upstream, "2 of 4 clients (envoy 1) reject cluster a: no");
    upstream.hears_rejections(CDS, std::slice::from_ref(&one));
    let expected = "1 of 1 client (distributary 0.1.0) rejects clusters: 2 of 4 clients (envoy 1) reject cluster a: no";
    assert_eq!(upstream.message(), expected);
    upstream.pass(ms(5000));
    upstream.hears_rejections(CDS, &[one]);
    assert!(upstream.sent().is_empty());
    let mut said = 0;
    for text in 0..200 {
        upstream.pass(ms(5000));
        let one = relayed(&upstream, &text.to_string());
        upstream.hears_rejections(CDS, &[one]);
        said += upstream.sent().len();
    }
    assert_eq!(said, 63);
}
