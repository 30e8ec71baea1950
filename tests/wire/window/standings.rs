// SPDX-License-Identifier: Apache-2.0
//! How all client streams stand: in `/clusters`, and in the gauges by type.

use std::time::Duration;

use distributary::xds::{Dialect, Reason, TypeUrl, Update};
use serde_json::{Value, json};

use super::{Window, client, command, served};
use crate::rest::put;
use crate::support::messages::Subscriber;
use crate::support::{CDS, EDS, Relay, now};

/// Half of the clients of each dialect hang: some do not read, some do not acknowledge. One rejects, one waits for a name that no
/// control plane answers. Each of them is seen, and nobody else.
#[tokio::test]
async fn clients_that_hang_wait_and_reject() {
    let relay = Relay::start();
    let window = Window::of(&relay);
    put(&relay, CDS, &["web"], 1);
    let mut clients = Vec::new();
    for at in 0..16 {
        let dialect = if at % 2 == 0 { Dialect::Delta } else { Dialect::Sotw };
        let mut one = client(&relay, dialect, CDS, &format!("edge-{at}")).await;
        one.subscribe(&["*"]);
        match at {
            0..4 => {}
            4..8 => drop(one.next().await.unwrap()),
            _ => {
                one.next().await.unwrap();
                one.ack();
            }
        }
        clients.push(one);
    }
    let mut rejects = client(&relay, Dialect::Delta, CDS, "rejects").await;
    rejects.subscribe(&["*"]);
    rejects.next().await.unwrap();
    rejects.nack("no");
    let mut waits = Vec::new();
    for dialect in [Dialect::Delta, Dialect::Sotw] {
        let mut one = client(&relay, dialect, EDS, "waits").await;
        one.subscribe(&["nobody-knows"]);
        waits.push(one);
    }
    window.until("rejects", CDS, "ERROR").await;

    let expected = json!({ "streams": 19, "up_to_date": 8, "rejecting": 1, "older": 0, "lagging": 8, "waiting": 2, "away": 0, "hung": 0 });
    until(&window, &expected).await;
    let (_, text) = window.get("/clusters").await;
    let line = "#relay::clients::8 of 19 streams are up to date; 1 rejects something; 8 have not answered a response for \
                over 10 s; 2 wait for over 10 s for what nobody has answered\n";
    assert!(text.contains(line), "{text}");
    for (kind, counts) in [("cds", [1, 8, 0]), ("eds", [0, 0, 2])] {
        for (state, count) in ["rejecting", "lagging", "waiting"].into_iter().zip(counts) {
            let sample = format!("distributary_{state}_clients{{type=\"{kind}\"}} {count}\n");
            let (_, metrics) = window.get("/metrics").await;
            assert!(metrics.contains(&sample), "{sample}: {metrics}");
        }
    }

    // In the end they are told that it does not exist, but nobody has said so.
    let silent = Update::Absent("nobody-knows".into(), Reason::TimedOut);
    relay.publish(&TypeUrl::new(EDS), vec![silent]);
    waits[0].next().await.unwrap();
    waits[0].ack();
    let deadline = now() + Duration::from_secs(60);
    for waiting in [1, 2] {
        while window.listed("&state=waiting").await.len() != waiting {
            assert!(now() < deadline, "not {waiting}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
    let listed = window.json("/resources?type=eds&state=timeout").await;
    let names = listed["resources"].as_object().unwrap().values().next().unwrap();
    assert_eq!(names[0]["name"], "nobody-knows", "{listed}");
    let absent = window.json("/resources?type=eds&state=does_not_exist").await;
    assert_eq!(absent["resources"], json!({}), "{absent}");
}

/// A client whose streams end unanswered, and which comes back each time, waits all the while: with a stream and between two streams.
/// One that stays away is counted too. Once a stream was answered, its client waits no more.
#[tokio::test]
async fn clients_whose_streams_end_unanswered_wait() {
    let relay = Relay::with(|plan| plan.protocol.timers.unanswered = Duration::from_secs(1));
    let window = Window::of(&relay);
    put(&relay, CDS, &["web"], 1);
    let _served = served(&relay, Dialect::Sotw, CDS, "served", &["*"]).await;
    let mut leaves = unserved(&relay, "leaves").await;
    leaves.call.end().await;
    let deadline = now() + Duration::from_secs(60);
    loop {
        let mut back = unserved(&relay, "returns").await;
        let with_stream = window.listed("&state=waiting").await.len();
        assert_eq!(back.call.end().await.code, 14);
        let away = window.json("/clients?format=json&state=waiting").await["away"].clone();
        if (with_stream, &away) == (1, &json!(2)) {
            break;
        }
        assert!(now() < deadline, "{with_stream} wait with a stream, and {away} without");
    }
    let expected = json!({ "streams": 1, "up_to_date": 1, "rejecting": 0, "older": 0, "lagging": 0, "waiting": 0, "away": 2, "hung": 0 });
    until(&window, &expected).await;
    let (_, metrics) = window.get("/metrics").await;
    let sample = "distributary_waiting_clients{type=\"eds\"} 2";
    assert!(metrics.lines().any(|line| line == sample), "{metrics}");
    let (_, text) = window.get("/clients").await;
    assert!(text.ends_with("because their last one ended unanswered: 2\n"), "{text}");
    let (code, table, said) = command(&["status"], &[&window]).await;
    assert!(table.contains(" 1/3 "), "{table}");
    let why = "1 of 1 stream is up to date; 2 more clients wait as long and have no stream now: their last ones ended unanswered";
    assert!(code == Some(1) && said.contains(why), "{said}");

    relay.put(EDS, &["nobody-knows"], "found");
    let mut back = unserved(&relay, "returns").await;
    back.next().await.unwrap();
    back.ack();
    let expected = json!({ "streams": 2, "up_to_date": 2, "rejecting": 0, "older": 0, "lagging": 0, "waiting": 0, "away": 1, "hung": 0 });
    until(&window, &expected).await;
}

/// A client that asks for a name which nobody answers for.
async fn unserved(relay: &Relay, id: &str) -> Subscriber {
    let mut client = client(relay, Dialect::Sotw, EDS, id).await;
    client.subscribe(&["nobody-knows"]);
    client
}

/// Waits until the streams stand so.
async fn until(window: &Window, expected: &Value) {
    let deadline = now() + Duration::from_secs(60);
    loop {
        let mut seen = window.json("/clusters?format=json").await["clients"].clone();
        seen.as_object_mut().unwrap().remove("why");
        if seen == *expected {
            return;
        }
        assert!(now() < deadline, "{seen}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
