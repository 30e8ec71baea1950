// SPDX-License-Identifier: Apache-2.0
//! Who rejects in a strange way: without a word, with too many, very much at once, or without reading on.

use std::time::Duration;

use distributary::xds::{Dialect, Name, TypeUrl};

use super::{CDS, Case, OLD, RDS, gets, rejects};
use crate::support::{Relay, now, until};

const SECOND: Duration = Duration::from_secs(1);

fn key(case: &Case) -> (TypeUrl, Option<Name>) {
    (TypeUrl::new(case.type_url), Some("a".into()))
}

/// Without a word, with 64 KiB of them, and about what it never got: it counts as what it is, and a newcomer that says the same is sent
/// older content.
#[tokio::test]
async fn whatever_the_words_are() {
    let long = "long ".repeat(64 * 1024 / 5);
    for words in ["", &*long, "nobody: was never sent"] {
        for case in Case::all().map(Case::new) {
            let mut old = case.clients_with("good", &[OLD]).await;
            case.put("bad");
            assert_eq!(old[0].next().await.unwrap().bodies, ["bad"]);
            old[0].nack(words);
            let view = case.relay.view();
            case.are_used(view, &[1]).await;
            let rows = view.rejections_of(&key(&case));
            assert_eq!((rows.len(), rows[0].clients, rows[0].older), (1, 1, 0));
            // They have a bound.
            assert!(rows[0].objection.words().len() <= words.len().min(16 * 1024));
            let mut new = case.client("newcomer", OLD).await;
            assert_eq!(new.next().await.unwrap().bodies, ["bad"]);
            new.nack(words);
            gets(&mut new, "good").await;
            case.are_used(view, &[2]).await;
            let rows = view.rejections_of(&key(&case));
            assert_eq!((rows.len(), rows[0].clients, rows[0].older), (1, 2, 1));
        }
    }
}

/// A client rejects whatever it is sent: that is eight older contents, the newest first and each once, and then nothing more. Others are
/// served.
#[tokio::test]
async fn who_rejects_whatever_it_is_sent() {
    for case in Case::all().map(Case::new) {
        let mut old = case.clients_with("0", &[OLD]).await;
        for one in 1..=9 {
            case.put(&one.to_string());
            gets(&mut old[0], &one.to_string()).await;
            case.acks_reach(one + 1).await;
        }
        case.put("bad");
        rejects(&mut old[0], "bad").await;
        let view = case.relay.view();
        case.are_used(view, &[1]).await;
        let mut new = case.client("newcomer", OLD).await;
        rejects(&mut new, "bad").await;
        for one in (2..=9).rev() {
            rejects(&mut new, &one.to_string()).await;
        }
        // A full state may follow without it.
        if let Some(more) = new.next_if_any().await {
            assert!(more.bodies.is_empty(), "{:?}: {more:?}", case.dialect);
            new.ack();
        }
        drop(case.newcomer("other", OLD, "bad", "9").await);
        case.put("better");
        gets(&mut new, "better").await;
        gets(&mut old[0], "better").await;
    }
}

/// A client rejects ten thousand names at once, and keeps what it has of each.
#[tokio::test]
async fn very_many_names_at_once() {
    const MANY: usize = 10_000;
    let names: Vec<String> = (0..MANY).map(|at| format!("n{at:05}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let case = Case::new((Dialect::Delta, CDS, &["*"]));
    case.relay.put(CDS, &names, "good");
    let mut old = case.client("old", OLD).await;
    let mut got = 0;
    while got < MANY {
        got += old.take().await.bodies.len();
    }
    case.acks_reach(1).await;
    case.relay.put(CDS, &names, "bad");
    let view = case.relay.view();
    while view.rejected().names().len() < MANY {
        match tokio::time::timeout(SECOND, old.next()).await {
            Ok(response) => assert_eq!(response.unwrap().removed, [""; 0]),
            Err(_) => continue,
        }
        old.nack("no");
    }
    let used = || view.rejected().used().len();
    until(|| used() == MANY, || format!("it uses {}", used())).await;
    // Others are served, and what it rejects goes with it.
    let mut other = case.client("other", OLD).await;
    assert_eq!(other.take().await.bodies[0], "bad");
    drop(old);
    until(|| view.rejected().names().is_empty(), || "it is still there").await;
    assert!(view.expire_older(now()).is_empty());
    assert!(view.expire_older(now() + 120 * SECOND).is_empty());
    assert!(view.head().older().is_empty());
}

/// Where nothing may be kept that nobody uses, a newcomer is sent what somebody uses, and else nothing.
#[tokio::test]
async fn no_room_for_what_nobody_uses() {
    for (dialect, type_url, names) in Case::all() {
        let case = Case {
            relay: Relay::with(|plan| plan.history_bytes = 0),
            dialect,
            type_url,
            names,
        };
        let mut old = case.clients_with("good", &[OLD]).await;
        let view = case.relay.view();
        case.put("bad");
        rejects(&mut old[0], "bad").await;
        case.are_used(view, &[1]).await;
        drop(case.newcomer("newcomer", OLD, "bad", "good").await);
        drop(old);
        until(|| view.rejected().names().is_empty(), || "they stay").await;
        for at in [1, 120] {
            assert!(view.expire_older(now() + at * SECOND).is_empty());
        }
        let mut late = case.client("late", OLD).await;
        rejects(&mut late, "bad").await;
        let listed = late.next_if_any().await;
        assert!(listed.is_none_or(|got| got.bodies.is_empty()), "{dialect:?}");
    }
}

/// Two streams of one node id are two clients; what one of them used counts for a while when it has gone, and its next stream takes it over.
#[tokio::test]
async fn two_clients_with_one_id() {
    for dialect in [Dialect::Sotw, Dialect::Delta] {
        let case = Case::new((dialect, RDS, &["a"]));
        let view = case.relay.view();
        case.put("good");
        let mut twins = Vec::new();
        for _ in 0..2 {
            let mut twin = case.client("twin", OLD).await;
            gets(&mut twin, "good").await;
            twins.push(twin);
        }
        case.acks_reach(2).await;
        case.put("bad");
        for twin in &mut twins {
            rejects(twin, "bad").await;
        }
        case.are_used(view, &[2]).await;
        drop(twins.pop());
        until(|| view.demand().readers_of(None).0 == 1, || "it stays").await;
        case.are_used(view, &[2]).await;
        let third = case.newcomer("twin", OLD, "bad", "good").await;
        case.are_used(view, &[2]).await;
        case.put("better");
        twins.push(third);
        for twin in &mut twins {
            gets(twin, "better").await;
        }
        case.are_used(view, &[]).await;
    }
}
