//! How much one turn of a stream looks at and sends.

#![expect(clippy::unwrap_used, reason = "a test: what cannot happen must fail it")]

use cache::Library;
use proto::envoy::service::discovery::v3::{DeltaDiscoveryRequest, DiscoveryRequest};
use protocol::{ClientRequest, Response, Server};
use xds::{Dialect, Sight};

use super::*;

const NAMES: usize = 10_000;
/// So many names are looked at in one turn.
const LOOKED_MAX: usize = 4096;
/// So many resources are in one response.
const ITEMS_MAX: usize = 8192;

fn names() -> Vec<String> {
    (0..NAMES).map(|number| format!("name-{number:05}")).collect()
}

fn server(dialect: Dialect) -> Server {
    opened(stream(StreamLimits::default()), dialect, 1)
}

/// The client asks for these names; `nonce` is that of the last response.
fn ask(server: &mut Server, dialect: Dialect, type_url: &TypeUrl, names: Vec<String>, nonce: &str, library: &Library) {
    let (now, type_url, response_nonce) = (start(), type_url.url().to_owned(), nonce.to_owned());
    let request = match dialect {
        Dialect::Sotw => ClientRequest::from(DiscoveryRequest {
            type_url,
            resource_names: names,
            response_nonce,
            ..Default::default()
        }),
        Dialect::Delta => ClientRequest::from(DeltaDiscoveryRequest {
            type_url,
            resource_names_subscribe: names,
            response_nonce,
            ..Default::default()
        }),
    };
    let mut progress = server.begin(request, library, now).unwrap();
    while server.go_on(&mut progress, library, now).unwrap() {}
    server.finish(progress).unwrap();
}

/// Returns the next response, after as many turns as it takes.
fn answer(server: &mut Server, sight: &Sight, library: &Library) -> Option<Response> {
    loop {
        let response = server.poll_response(sight, library, start());
        if response.is_some() || !server.is_short() {
            return response;
        }
    }
}

/// A view that has the resources of these names, and knows nothing of others.
fn sight(type_url: &TypeUrl, names: &[String]) -> Sight {
    let view = view();
    let puts = names.iter().map(|name| put(type_url, name, ""));
    drop(view.publish(&[named(type_url, puts.collect())]));
    Sight::from(view.cut())
}

/// What turns look at is bounded: in between others have theirs. One response has all that is known, although it is known from the
/// first turn on.
#[test]
fn a_turn_looks_at_a_part_of_the_names() {
    for (dialect, type_url) in [
        (Dialect::Sotw, eds()),
        (Dialect::Sotw, cds()),
        (Dialect::Delta, eds()),
        (Dialect::Delta, cds()),
    ] {
        for known in [
            &[][..],
            &names()[..1],
            &[names().swap_remove(0), names().swap_remove(NAMES - 1)],
        ] {
            let (library, now) = (Library::new(1 << 20, 1 << 20), start());
            let mut server = server(dialect);
            ask(&mut server, dialect, &type_url, names(), "", &library);
            let sight = sight(&type_url, known);
            let mut sent = Vec::new();
            let mut turns = 0;
            loop {
                let before = server.kept();
                let response = server.poll_response(&sight, &library, now);
                let looked = before.saturating_sub(server.kept());
                assert!(
                    looked <= LOOKED_MAX,
                    "{dialect:?} {type_url:?}: {looked} names in one turn"
                );
                let none = response.is_none();
                sent.extend(response.map(|response| response.batch.items().len()));
                turns += 1;
                assert!(turns < 10, "{dialect:?} {type_url:?}: no end");
                if none && !server.is_short() {
                    break;
                }
                assert!(!server.is_short() || !server.is_done(), "{dialect:?} {type_url:?}");
            }
            assert!(
                turns >= NAMES.div_ceil(LOOKED_MAX),
                "{dialect:?} {type_url:?}: {turns} turns"
            );
            let whole: Vec<usize> = Some(known.len()).filter(|count| *count > 0).into_iter().collect();
            assert_eq!(sent, whole, "{dialect:?} {type_url:?}");
        }
    }
}

/// Who follows a wildcard and was sent all of it has no other turn until there is input.
#[test]
fn who_was_sent_a_wildcard_is_done() {
    let library = Library::new(64 << 20, 64 << 20);
    let view = view();
    let whole = Changes {
        complete: Some(true),
        ..covered(&cds(), vec![put(&cds(), "a", "")])
    };
    drop(view.publish(&[whole]));
    let sight = Sight::from(view.cut());
    for dialect in [Dialect::Sotw, Dialect::Delta] {
        let mut server = server(dialect);
        ask(&mut server, dialect, &cds(), Vec::new(), "", &library);
        let response = server.poll_response(&sight, &library, start());
        assert!(response.is_some() && server.is_done(), "{dialect:?}");
    }
}

/// A response is bounded in count as well as in bytes: tiny resources cost more than their bytes.
#[test]
fn a_response_has_a_part_of_the_resources() {
    let library = Library::new(64 << 20, 64 << 20);
    let sight = sight(&eds(), &names());
    let mut server = server(Dialect::Delta);
    ask(&mut server, Dialect::Delta, &eds(), names(), "", &library);
    let mut sent = Vec::new();
    while let Some(response) = answer(&mut server, &sight, &library) {
        sent.push(response.batch.items().len());
        let receipt = server.handle_acknowledgement(eds().url().as_bytes(), response.nonce.as_bytes());
        assert!(receipt.is_some());
    }
    assert_eq!(sent, [ITEMS_MAX, NAMES - ITEMS_MAX]);
}

/// C-22, K-16: a full state answers a collection that no server has answered in time, and lists what the client holds of it, also if very
/// many names are looked at before that.
#[test]
fn a_collection_beside_very_many_names() {
    const MEMBER: &str = "xdstp://a/envoy.config.cluster.v3.Cluster/d/x";
    const ALL: &str = "xdstp://a/envoy.config.cluster.v3.Cluster/d/*";
    let (library, mut server) = (Library::new(1 << 20, 1 << 20), server(Dialect::Sotw));
    let mut asks = |names: Vec<String>, nonce: &str, sight: &Sight| {
        ask(&mut server, Dialect::Sotw, &cds(), names, nonce, &library);
        answer(&mut server, sight, &library).expect("a response")
    };
    let first = asks(vec![MEMBER.to_owned()], "", &sight(&cds(), &[MEMBER.to_owned()]));
    let view = view();
    let silent = Update::Absent(Name::from(ALL), Reason::TimedOut);
    drop(view.publish(&[named(&cds(), vec![silent])]));
    let others = names().into_iter().map(|name| format!("~{name}"));
    let all = others.chain([ALL.to_owned()]).collect();
    let second = asks(all, &first.nonce.to_string(), &Sight::from(view.cut()));
    let listed: Vec<&str> = second.batch.items().iter().map(|item| item.name().as_str()).collect();
    assert_eq!(listed, [MEMBER]);
}
