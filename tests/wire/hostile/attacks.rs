// SPDX-License-Identifier: Apache-2.0
//! The attacks of the fleet: what each connection sends first, then again and again.

use std::time::Duration;

use super::attack::{ADDRESSES, Attack, Hello, Place, USUAL};
use super::words::*;
use crate::support::EDS;
use crate::support::raw::{DATA, HEADERS, RESET, SETTINGS, WINDOW_UPDATE, call, frame};

#[rustfmt::skip]
pub(super) const ATTACKS: &[Attack] = &[
    Attack { name: "health checks without a request", turn: |n| call(id(n), CHECK, &[]), turns: 300, ..USUAL },
    Attack { name: "requests without an end", connections: 30, turns: 100,
        turn: |n| [call(id(n), sotw(), &[]), data(id(n), &unfinished(60_000))].concat(), ..USUAL },
    Attack { name: "rejections that inflate", turns: 200, pause: Duration::from_millis(40),
        turn: |n| [call(id(n), sotw(), &[("grpc-encoding", "gzip")]), data(id(n), &COMPRESSED)].concat(), ..USUAL },
    Attack { name: "rejections of nothing", turn: |n| [begin(n, sotw()), data(1, &REJECTION)].concat(), pause: Duration::from_millis(10), ..USUAL },
    Attack { name: "many names", connections: 5, turns: SHARED, pause: Duration::from_millis(20),
        turn: |n| [begin(n, delta()), data(1, shared(n))].concat(), ..USUAL },
    Attack { name: "names that nobody else has", connections: 12, turns: 190,
        turn: |n| {
            let some = (0..1000).map(|name| format!("a-name-that-nobody-knows-{}-{name}", another()));
            [begin(n, delta()), data(1, &names(EDS, some.collect(), Vec::new()))].concat()
        }, ..USUAL },
    Attack { name: "wrong tokens",
        turn: |n| {
            let heads = (5 * n..5 * n + 5).map(|n| {
                let token = format!("Bearer {}", wrong_token(another()));
                call(id(n), sotw(), &[("authorization", &token)])
            });
            heads.collect::<Vec<_>>().concat()
        }, ..USUAL },
    Attack { name: "invented types", connections: 5, turns: 200, pause: Duration::from_millis(50),
        turn: |n| {
            let types = (0..50).map(|nth| names(&format!("invented.{n}.{nth}"), vec!["a".to_owned()], Vec::new()));
            [
                call(id(n), delta(), &[]),
                data(id(n), &types.collect::<Vec<_>>().concat()),
            ]
            .concat()
        }, ..USUAL },
    Attack { name: "invented classes", turn: |n| of_class(n, format!("invented-{n}")), turns: 200, pause: Duration::from_millis(20), ..USUAL },
    Attack { name: "invented classes with long names", turns: 200, pause: Duration::from_millis(20),
        turn: |n| of_class(n, format!("{n}-{}", "x".repeat(50_000))), ..USUAL },
    Attack { name: "views of a hundred addresses", connections: 100, addresses: ADDRESSES, turns: 20, pause: Duration::from_millis(50),
        turn: |n| of_class(n, format!("invented-{}", another())), ..USUAL },
    Attack { name: "versions that clients bring, in small requests", turns: 500,
        turn: |n| [call(id(n), delta(), &[]), data(id(n), &versions(250))].concat(), ..USUAL },
    Attack { name: "names in small requests", connections: 12, turns: 760, pause: Duration::from_millis(10),
        turn: |n| {
            let some = (0..250).map(|name| format!("a-name-that-nobody-knows-{}-{name}", another()));
            [begin(n, delta()), data(1, &names(EDS, some.collect(), Vec::new()))].concat()
        }, ..USUAL },
    Attack { name: "names that all attackers share", connections: 12, turns: SHARED,
        turn: |n| [begin(n, delta()), data(1, shared(n))].concat(), ..USUAL },
    Attack { name: "wildcards on many connections, half-closed", connections: 300, turns: 20, pause: Duration::from_millis(20),
        turn: |n| [call(id(n), delta(), &[]), frame(DATA, END_STREAM, id(n), &all())].concat(), ..USUAL },
    Attack { name: "names that come and go",
        turn: |n| {
            let some = |n: u32| (0..100).map(|name| format!("{n}-{name}")).collect();
            [
                begin(n, delta()),
                data(1, &names(EDS, some(n), some(n.saturating_sub(1)))),
            ]
            .concat()
        }, ..USUAL },
    Attack { name: "names that may be aliases, and others that are held", turns: 20, pause: Duration::from_millis(200),
        turn: may_be_aliases, ..USUAL },
    Attack { name: "names of an invented type that are given up", pause: Duration::from_millis(50),
        turn: |n| {
            let some: Vec<String> = (0..2000).map(|name| format!("{n}-{name}")).collect();
            let lists = [(some.clone(), Vec::new()), (Vec::new(), some)];
            let requests = lists.map(|(begun, ended)| names("invented", begun, ended));
            [begin(n, delta()), data(1, &requests.concat())].concat()
        }, ..USUAL },
    Attack { name: "half-closed wildcards", turns: 500,
        turn: |n| [call(id(n), delta(), &[]), frame(DATA, END_STREAM, id(n), &all())].concat(), ..USUAL },
    Attack { name: "streams that do not read", turn: asks_for_all, turns: 500, reads: false, ..USUAL },
    Attack { name: "streams that do not read, over TLS", place: Place::Secure, turn: asks_for_all, turns: 500, reads: false, ..USUAL },
    Attack { name: "handshakes without an end", connections: 100, hello: Hello::Nothing, place: Place::Secure, turns: 20, pause: Duration::from_millis(50),
        turn: |n| if n == 0 { HANDSHAKE.clone() } else { Vec::new() }, ..USUAL },
    Attack { name: "rapid resets", pause: Duration::ZERO,
        turn: |n| [call(id(n), sotw(), &[]), frame(RESET, 0, id(n), &8_u32.to_be_bytes())].concat(), ..USUAL },
    Attack { name: "resets that the relay is made to send", pause: Duration::ZERO,
        turn: |n| [call(id(n), sotw(), &[]), frame(WINDOW_UPDATE, 0, id(n), &[0; 4])].concat(), ..USUAL },
    Attack { name: "pings", turn: |_| frame(PING, 0, 0, &[0; 8]).repeat(10), reads: false, ..USUAL },
    Attack { name: "settings", turn: |_| frame(SETTINGS, 0, 0, &[]).repeat(10), reads: false, ..USUAL },
    Attack { name: "empty frames", turn: |n| [begin(n, sotw()), frame(DATA, 0, 1, &[]).repeat(10)].concat(), ..USUAL },
    Attack { name: "padding",
        turn: |n| {
            let padding = [&[255][..], &[0; 255]].concat();
            [begin(n, sotw()), frame(DATA, PADDED, 1, &padding).repeat(10)].concat()
        }, ..USUAL },
    Attack { name: "windows that open and close",
        turn: |n| {
            let asks = if n == 0 { data(1, &all()) } else { Vec::new() };
            let window = |bytes: u8| frame(SETTINGS, 0, 0, &[0, INITIAL_WINDOW_SIZE, 0, 0, bytes, 0]);
            let one = frame(WINDOW_UPDATE, 0, 1, &1_u32.to_be_bytes()).repeat(10);
            [begin(n, delta()), asks, window(0), window(255), one].concat()
        }, ..USUAL },
    Attack { name: "headers without an end",
        turn: |n| match n { 0 => frame(HEADERS, 0, 1, &[]), _ => frame(CONTINUATION, 0, 1, &[0; 1000]), }, ..USUAL },
    Attack { name: "many headers", turn: |n| call(id(n), sotw(), &vec![("x-filler", FILLER); 100]), ..USUAL },
    Attack { name: "bytes without a meaning",
        turn: |n| { (0..1000_u32).map(|at| (at.wrapping_mul(n + 7) >> 3).to_be_bytes()[3]).collect() }, ..USUAL },
    Attack { name: "connections that come and go", connections: 20, turns: 0, pause: Duration::from_millis(5), ..USUAL },
    Attack { name: "connections from a hundred addresses in turn", connections: 20, turns: 1, pause: Duration::from_millis(5), addresses: ADDRESSES,
        turn: asks_for_all, ..USUAL },
    Attack { name: "polls, one after the other, as the rules allow", hello: Hello::Nothing, turn: |_| SMALL_POLL.as_bytes().to_vec(), ..USUAL },
    Attack { name: "polls without an end", connections: 50, hello: Hello::Nothing, pause: Duration::from_millis(10),
        turn: |n| match n { 0 => POLL.as_bytes().to_vec(), _ => vec![b' '; 200], }, ..USUAL },
    Attack { name: "TLS where there is none", connections: 20, hello: Hello::Nothing, turns: 1, pause: Duration::from_millis(5),
        turn: |_| vec![0x16, 3, 1, 0, 200, 1], ..USUAL },
    Attack { name: "questions on the admin address without an end", place: Place::Admin, connections: 200, hello: Hello::Nothing, pause: Duration::from_millis(500),
        turn: |n| match n { 0 => QUESTION.as_bytes().to_vec(), _ => Vec::new(), }, ..USUAL },
    Attack { name: "visitors of the admin address that are silent", place: Place::Admin, connections: 600,
        hello: Hello::Nothing, pause: Duration::from_millis(500), ..USUAL },
    Attack { name: "questions whose answers nobody reads", turn: asks_about_all, turns: 50, reads: false, pause: Duration::from_millis(20), ..USUAL },
    Attack { name: "questions on the admin address whose answers nobody reads", place: Place::Admin, turns: 50, reads: false, pause: Duration::from_millis(20),
        turn: asks_about_all, ..USUAL },
];
