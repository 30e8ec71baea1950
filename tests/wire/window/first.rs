// SPDX-License-Identifier: Apache-2.0
//! What a reader of the page asks for: the first of many, and a rejection beside what was there before.

use distributary::xds::Dialect;
use serde_json::{Value, json};

use super::{Window, command, full, served, standings};
use crate::rest::put;
use crate::support::{CDS, EDS, Relay};

#[tokio::test]
async fn a_rejection_beside_what_was_there_before() {
    for dialect in [Dialect::Delta, Dialect::Sotw] {
        let relay = Relay::start();
        let window = Window::of(&relay);
        put(&relay, CDS, &["a", "b"], 1);
        let mut edge = served(&relay, dialect, CDS, "edge-1", &["*"]).await;
        window.until("edge-1", CDS, "SYNCED").await;
        put(&relay, CDS, &["a"], 2);
        edge.next().await.unwrap();
        edge.nack("bad");
        window.until("edge-1", CDS, "ERROR").await;

        let found = window.json("/nacks?type=cds&name=a").await["rejections"].clone();
        assert_eq!(found.as_array().unwrap().len(), 1, "{found}");
        assert_eq!(found[0]["content"]["connect_timeout"], "2s", "{found}");
        assert_eq!(found[0]["before"]["content"]["connect_timeout"], "1s", "{found}");
        assert_ne!(found[0]["before"]["version"], found[0]["version"]);
        // The list says which contents can be compared, without showing them.
        let listed = window.json("/nacks?type=cds").await["rejections"][0].clone();
        assert_eq!(listed["before"]["version"], found[0]["before"]["version"], "{listed}");
        assert_eq!(
            json!([listed["content"], listed["before"]["content"]]),
            json!([null, null])
        );
        for nothing in ["/nacks?type=eds", "/nacks?name=c", "/nacks?name=a&version=0"] {
            assert_eq!(window.json(nothing).await["rejections"], json!([]), "{nothing}");
        }
        put(&relay, CDS, &["a"], 3);
        edge.next().await.unwrap();
        edge.nack("bad");
        let newest = async || window.json("/nacks?name=a").await["rejections"][0].clone();
        while newest().await["content"]["connect_timeout"] != "3s" {}
        // What the client uses.
        let found = newest().await;
        assert_eq!(found["before"]["content"]["connect_timeout"], "1s", "{found}");
        let (code, text) = window.get("/nacks?node=edge-1").await;
        assert!(code == 400 && text.starts_with("write /nacks, with any of"), "{text}");
    }
}

#[tokio::test]
async fn the_first_of_many() {
    let relay = Relay::start();
    let window = Window::of(&relay);
    relay.put(EDS, &["a", "b", "c"], "1");
    let mut clients = Vec::new();
    for id in ["edge-1", "edge-2", "edge-3"] {
        clients.push(served(&relay, Dialect::Delta, EDS, id, &["a", "b", "c", "z"]).await);
        window.until(id, EDS, "SYNCED").await;
    }
    for (limit, more) in [(0, true), (2, true), (3, false), (4, false)] {
        let list = window.json(&format!("/clients?format=json&limit={limit}")).await;
        assert_eq!(list["clients"].as_array().unwrap().len(), limit.min(3), "{list}");
        assert_eq!(list["more"], more, "{list}");
    }
    let (_, text) = window.get("/clients?limit=2").await;
    assert!(text.ends_with("\nthere are more\n"), "{text}");
    assert_eq!(text.lines().count(), 4, "{text}");

    // What the client lacks is shown before all that it has.
    let one = window.json("/clients/node=edge-1?limit=2").await["streams"][0]["types"][full(EDS)].clone();
    assert_eq!(standings(&one), ["z unknown", "a accepted"], "{one}");
    assert_eq!(one["standings"], json!({ "accepted": 3, "unknown": 1 }));
    let (code, text) = window.get("/clients/node=edge-1?most=2").await;
    assert!(code == 400 && text.contains("?limit=COUNT"), "{text}");
}

/// Whoever rejects something is the first of all, whenever it came; others are in the order of their nodes. A query chooses by state.
#[tokio::test]
async fn those_in_trouble_come_first() {
    let relay = Relay::start();
    let window = Window::of(&relay);
    relay.put(EDS, &["a"], "1");
    let mut clients = Vec::new();
    for id in ["edge-3", "edge-1", "edge-2"] {
        clients.push(served(&relay, Dialect::Delta, EDS, id, &["a"]).await);
        window.until(id, EDS, "SYNCED").await;
    }
    let order = async |query: &str| {
        let listed = window.listed(query).await;
        let named = |one: &Value| format!("{} {}", one["node"]["id"], one["state"]).replace('"', "");
        listed.iter().map(named).collect::<Vec<_>>()
    };
    assert_eq!(order("").await, ["edge-1 current", "edge-2 current", "edge-3 current"]);
    relay.put(EDS, &["a"], "2");
    for one in &mut clients {
        one.next().await.unwrap();
    }
    clients[0].nack("bad");
    window.until("edge-3", EDS, "ERROR").await;
    assert_eq!(order("").await[0], "edge-3 rejecting");
    assert_eq!(order("&state=rejecting").await, ["edge-3 rejecting"]);
    assert_eq!(order("&state=current").await, ["edge-1 current", "edge-2 current"]);
    assert_eq!(order("&software=probe*").await.len(), 3);
    assert_eq!(order("&software=envoy*").await, [""; 0]);
    assert_eq!(order("&state=lagging").await, [""; 0]);
    // Who has sent most is the first, whatever its state.
    for name in ["b", "c", "d"] {
        clients[2].subscribe(&[name]);
    }
    for sort in ["requests", "request_bytes"] {
        let by = format!("&sort={sort}");
        while order(&by).await[0] != "edge-2 current" {}
        let listed = window.listed(&by).await;
        let sent: Vec<u64> = listed.iter().map(|one| one[sort].as_u64().unwrap()).collect();
        assert!(sent.is_sorted_by(|one, next| one >= next), "{sent:?}");
        assert!(sent[0] > sent[2], "{sent:?}");
    }
    assert_eq!(window.get("/clients?sort=age").await.0, 400);
    let (code, table, error) = command(&["status", "--clients", "--sort", "requests"], &[&window]).await;
    let nodes = table.lines().filter_map(|line| line.split_whitespace().next());
    assert_eq!(nodes.take(2).collect::<Vec<_>>(), ["NODE", "edge-2"], "{table}");
    assert_eq!(code, Some(1));
    assert!(error.contains("1 client stream rejects something;"), "{error}");
    let (_, text) = window.get("/clients").await;
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("STREAM     STATE"), "{text}");
    assert!(
        lines[1].contains(" rejecting ") && lines[1].ends_with("edge-3"),
        "{text}"
    );
    for wrong in ["state=bad", "software=*{", "sort=age"] {
        assert_eq!(window.get(&format!("/clients?{wrong}")).await.0, 400, "{wrong}");
    }
}

/// How long it took until all had accepted a change is a fact of that change: later ones do not alter it, and it is only told where it is
/// known.
#[tokio::test]
async fn the_time_of_a_change_stays() {
    let relay = Relay::start();
    let window = Window::of(&relay);
    relay.put(EDS, &["a", "b"], "1");
    let mut edge = served(&relay, Dialect::Delta, EDS, "edge-1", &["a", "b"]).await;
    window.until("edge-1", EDS, "SYNCED").await;
    let time = async |name: &str| {
        let one = window.json(&format!("/resources/{name}?type=eds")).await;
        assert_eq!(one["adoption"]["accepted"], 1, "{one}");
        one["adoption"]["at_latest_seconds"].as_f64()
    };
    assert_eq!(time("a").await, None, "the client has asked for what was there");
    relay.put(EDS, &["a"], "2");
    edge.take().await;
    window.until("edge-1", EDS, "SYNCED").await;
    let first = time("a").await;
    assert!(first.is_some_and(|time| time > 0.0), "{first:?}");
    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    relay.put(EDS, &["b"], "2");
    edge.take().await;
    window.until("edge-1", EDS, "SYNCED").await;
    assert!(time("b").await.is_some());
    assert_eq!(time("a").await, first);
}

/// The last changes are those that arrived last, each once, with how many clients have accepted it.
#[tokio::test]
async fn the_last_changes_and_the_hour() {
    let relay = Relay::start();
    let window = Window::of(&relay);
    relay.put(EDS, &["a", "b"], "1");
    let mut edge = served(&relay, Dialect::Delta, EDS, "edge-1", &["a", "b", "gone"]).await;
    window.until("edge-1", EDS, "SYNCED").await;
    relay.put(EDS, &["b"], "2");
    edge.take().await;
    let changes = async || window.json("/changes").await["changes"].clone();
    while changes().await[0]["adoption"]["accepted"] != 1 {}
    let found = changes().await;
    let told = |at: usize| json!([found[at]["count"], found[at]["some"]]);
    assert_eq!(told(0), json!([1, ["b"]]), "{found}");
    assert_eq!(told(1), json!([1, ["a"]]), "{found}");
    let one = window.json("/changes?limit=1").await["changes"].clone();
    assert_eq!(one.as_array().unwrap().len(), 1);

    let sorted = window.json("/resources?type=eds&sort=age&limit=1").await;
    assert_eq!(
        json!([sorted["resources"][full(EDS)][0]["name"], sorted["more"]]),
        json!(["b", true])
    );
    let open = window.json("/resources?type=eds&state=requested").await;
    assert_eq!(open["resources"][full(EDS)][0]["name"], "gone", "{open}");
    for wrong in ["/resources?state=absent", "/resources?sort=colour", "/changes?last=1"] {
        assert_eq!(window.get(wrong).await.0, 400, "{wrong}");
    }
    let hour = window.json("/history").await;
    assert!(hour["since"].is_string() && hour["streams"].is_array(), "{hour}");
}
