// SPDX-License-Identifier: Apache-2.0
//! How much one turn of a stream looks at and sends.

#![expect(clippy::unwrap_used, reason = "a test: what cannot happen must fail it")]

use cache::Library;
use protocol::{Response, SLICE};
use xds::Sight;

use super::*;

const NAMES: usize = 10_000;
/// So many names are looked at in one turn.
const LOOKED_MAX: usize = 4096;
/// So many resources are in one response.
const ITEMS_MAX: usize = 8192;
/// So many names are removed in one response.
const GONE_MAX: usize = 2048;

fn names() -> Vec<String> {
    (0..NAMES).map(|number| format!("name-{number:05}")).collect()
}

fn server(dialect: Dialect) -> Server {
    opened(stream(StreamLimits::default()), dialect, 1)
}

/// Reads a request. Returns how many slices it has.
fn read(server: &mut Server, request: impl Into<ClientRequest>, library: &Library) -> usize {
    let now = start();
    let mut progress = server.begin(request.into(), library, now).unwrap();
    let mut slices = 1;
    while server.go_on(&mut progress, library, now).unwrap() {
        slices += 1;
    }
    server.finish(progress).unwrap();
    slices
}

/// The client asks for these names. Returns how many slices the request has.
fn ask(
    server: &mut Server,
    dialect: Dialect,
    type_url: &TypeUrl,
    names: Vec<String>,
    nonce: &str,
    library: &Library,
) -> usize {
    read(server, request(dialect, None, type_url, names, nonce), library)
}

/// In delta, the client gives up these names of endpoints.
fn give_up(server: &mut Server, names: Vec<String>, library: &Library) -> usize {
    let request = DeltaDiscoveryRequest {
        type_url: eds().url().to_owned(),
        resource_names_unsubscribe: names,
        ..Default::default()
    };
    read(server, request, library)
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
    let whole = whole(&cds(), vec![put(&cds(), "a", "")]);
    drop(view.publish(&[whole]));
    let sight = Sight::from(view.cut());
    for dialect in [Dialect::Sotw, Dialect::Delta] {
        let mut server = server(dialect);
        ask(&mut server, dialect, &cds(), Vec::new(), "", &library);
        let response = server.poll_response(&sight, &library, start());
        assert!(response.is_some() && server.is_done(), "{dialect:?}");
    }
}

/// Who has rejected all that a wildcard has is sent a change, and told of a removal, without a look at everything else.
#[test]
fn who_rejects_everything_is_sent_a_change_in_one_turn() {
    let library = Library::new(64 << 20, 64 << 20);
    let view = view();
    let publish = |updates| {
        drop(view.publish(&[whole(&cds(), updates)]));
        Sight::from(view.cut())
    };
    let mut sight = publish(names().iter().map(|name| put(&cds(), name, "")).collect());
    let mut server = server(Dialect::Delta);
    ask(&mut server, Dialect::Delta, &cds(), Vec::new(), "", &library);
    while let Some(response) = answer(&mut server, &sight, &library) {
        reject(&mut server, &response, &library);
    }
    let (changed, gone) = (&names()[7], &names()[NAMES - 7]);
    for change in [
        put(&cds(), changed, "another"),
        Update::Absent(gone.as_str().into(), Reason::Said),
    ] {
        sight = publish(vec![change]);
        server.handle_dirty(&cds(), Dirty::Names(Vec::new()));
        let response = server.poll_response(&sight, &library, start()).expect("a response");
        assert!(!server.is_short(), "more was looked at");
        let items = response.batch.items().iter().map(|item| item.name());
        let told: Vec<&str> = items.chain(response.batch.removed()).map(Name::as_str).collect();
        assert!(told == [changed] || told == [gone], "{told:?}");
        reject(&mut server, &response, &library);
        assert!(server.poll_response(&sight, &library, start()).is_none() && !server.is_short());
    }
}

/// The client rejects a response.
fn reject(server: &mut Server, response: &Response, library: &Library) {
    let detail = proto::google::rpc::Status {
        message: "no".to_owned(),
        ..Default::default()
    };
    let request = DeltaDiscoveryRequest {
        type_url: cds().url().to_owned(),
        response_nonce: response.nonce.to_string(),
        error_detail: Some(detail),
        ..Default::default()
    };
    read(server, request, library);
}

/// A response is bounded in count as well as in bytes: tiny resources cost more than their bytes. A relay is told if more follows.
#[test]
fn a_response_has_a_part_of_the_resources() {
    let library = Library::new(64 << 20, 64 << 20);
    let sight = sight(&eds(), &names());
    let mut server = server(Dialect::Delta);
    ask(&mut server, Dialect::Delta, &eds(), names(), "", &library);
    let mut sent = Vec::new();
    while let Some(response) = answer(&mut server, &sight, &library) {
        sent.push(response.batch.items().len());
        assert_eq!(
            response.nonce.as_bytes().ends_with(b"+"),
            sent.len() == 1,
            "more follows"
        );
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

/// A client of endpoints that has all of these names, in delta.
fn settled(library: &Library) -> Server {
    let mut server = server(Dialect::Delta);
    ask(&mut server, Dialect::Delta, &eds(), names(), "", library);
    let sight = sight(&eds(), &names());
    while let Some(response) = answer(&mut server, &sight, library) {
        server
            .handle_acknowledgement(eds().url().as_bytes(), response.nonce.as_bytes())
            .unwrap();
    }
    server
}

/// C-26: removals go when all other names are looked at, a part of them in one turn. What is found to be gone is not looked at again
/// until it goes.
#[test]
fn a_turn_looks_at_a_part_of_what_is_gone() {
    let view = view();
    let gone = names()
        .into_iter()
        .map(|name| Update::Absent(Name::from(name), Reason::Said));
    drop(view.publish(&[named(&eds(), gone.collect())]));
    let sight = Sight::from(view.cut());
    let all = || names().into_iter().map(Name::from).collect();
    for dirty in [Dirty::Names(all()), Dirty::All] {
        let library = Library::new(64 << 20, 64 << 20);
        let mut server = settled(&library);
        server.handle_dirty(&eds(), dirty);
        let (mut looked, mut removed) = (0, Vec::new());
        while removed.iter().sum::<usize>() < NAMES {
            match server.poll_response(&sight, &library, start()) {
                Some(response) => removed.push(response.batch.removed().len()),
                None => looked += 1,
            }
            assert!(looked < 10, "no end: {removed:?} removed");
        }
        assert!(looked >= NAMES / LOOKED_MAX, "all was looked at in {looked} turns");
        assert!(removed.iter().all(|count| *count <= GONE_MAX), "{removed:?}");
        assert_eq!(removed.len(), NAMES.div_ceil(GONE_MAX), "{removed:?}");
        assert!(server.poll_response(&sight, &library, start()).is_none() && !server.is_short());
    }
}

/// A client whose server changes has all its rows looked at, a part of them in one turn.
#[test]
fn a_turn_lists_a_part_of_the_rows() {
    let library = Library::new(64 << 20, 64 << 20);
    let mut server = settled(&library);
    let sight = sight(&eds(), &names());
    let at_rest = server.kept();
    server.handle_moved(start());
    let mut turns = 0;
    loop {
        let listed = server.kept() - at_rest;
        assert!(listed <= LOOKED_MAX, "{listed} names are listed at once");
        assert!(server.poll_response(&sight, &library, start()).is_none());
        turns += 1;
        if !server.is_short() {
            break;
        }
    }
    assert!((NAMES.div_ceil(LOOKED_MAX)..10).contains(&turns), "{turns} turns");
    assert_eq!(server.kept(), at_rest);
}

/// What was listed in an earlier turn is listed again if the server changes once more.
#[test]
fn rows_before_the_one_that_comes_next() {
    let library = Library::new(64 << 20, 64 << 20);
    let mut server = settled(&library);
    server.handle_moved(start());
    assert!(
        server
            .poll_response(&sight(&eds(), &names()), &library, start())
            .is_none()
    );
    let view = view();
    let puts = names().into_iter().enumerate().map(|(at, name)| {
        let body = if at == 0 { "another" } else { "" };
        put(&eds(), &name, body)
    });
    drop(view.publish(&[named(&eds(), puts.collect())]));
    server.handle_moved(start());
    let response = answer(&mut server, &Sight::from(view.cut()), &library).expect("a response");
    let sent: Vec<&str> = response.batch.items().iter().map(|item| item.name().as_str()).collect();
    assert_eq!(sent, [&names()[0]]);
}

/// The members of a collection are listed a part in one turn, whether it is asked for once or again and in two spellings, and answered
/// as if all were listed at once. When it ends, they are let go a part in one turn, and nothing is said of them.
#[test]
fn a_turn_lists_a_part_of_a_collection() {
    const DIRECTORY: &str = "xdstp://a/envoy.config.endpoint.v3.ClusterLoadAssignment/d";
    let library = Library::new(64 << 20, 64 << 20);
    let members: Vec<String> = names()
        .iter()
        .map(|name| format!("{DIRECTORY}/{name}?a=1&b=1"))
        .collect();
    let sight = sight(&eds(), &members);
    let mut server = server(Dialect::Delta);
    let [text, other] = ["a=1&b=1", "b=1&a=1"].map(|parameters| format!("{DIRECTORY}/*?{parameters}"));
    for texts in [vec![text.clone()], vec![text.clone(), other.clone()]] {
        ask(&mut server, Dialect::Delta, &eds(), texts, "", &library);
        let (mut turns, mut sent) = (0, Vec::new());
        while sent.iter().sum::<usize>() < NAMES {
            let before = server.kept();
            let response = server.poll_response(&sight, &library, start());
            let listed = server.kept().saturating_sub(before);
            let Some(response) = response else {
                assert!(listed <= LOOKED_MAX, "{listed} members in one turn");
                turns += 1;
                continue;
            };
            sent.push(response.batch.items().len());
            server
                .handle_acknowledgement(eds().url().as_bytes(), response.nonce.as_bytes())
                .unwrap();
        }
        assert!((NAMES / LOOKED_MAX..10).contains(&turns), "{turns} turns");
        assert_eq!(sent, [ITEMS_MAX, NAMES - ITEMS_MAX]);
        assert!(answer(&mut server, &sight, &library).is_none());
    }
    let slices = give_up(&mut server, vec![text, other], &library);
    assert!((NAMES.div_ceil(LOOKED_MAX)..10).contains(&slices), "{slices} slices");
    assert_eq!((server.names(), server.kept()), (0, 0));
    assert!(answer(&mut server, &sight, &library).is_none());
}

/// In SotW a list of all names says which of them end: it is compared with them in slices.
#[test]
fn a_list_is_compared_in_slices() {
    let library = Library::new(64 << 20, 64 << 20);
    let mut server = server(Dialect::Sotw);
    ask(&mut server, Dialect::Sotw, &eds(), names(), "", &library);
    let all_but_one = names().split_off(1);
    let slices = ask(&mut server, Dialect::Sotw, &eds(), all_but_one, "", &library);
    // Each name is read, and each row is compared with what was read.
    assert!(slices >= (2 * NAMES - 1) / SLICE, "{slices} slices");
    assert_eq!(server.names(), NAMES - 1);
}

/// In delta a request may end very many names, also such as the client never asked for.
#[test]
fn names_that_end_are_read_in_slices() {
    let slices = give_up(&mut server(Dialect::Delta), names(), &Library::new(1 << 20, 1 << 20));
    assert!(slices >= NAMES / SLICE, "{slices} slices");
}
