//! How all client streams stand: in `/clusters`, and in the gauges by type.

use std::time::Duration;

use distributary::xds::{Dialect, Reason, TypeUrl, Update};
use serde_json::{Value, json};

use super::{Window, client};
use crate::rest::put;
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

    let expected = json!({ "streams": 19, "up_to_date": 8, "rejecting": 1, "lagging": 8, "waiting": 2 });
    until(&window, &expected).await;
    let (_, text) = window.get("/clusters").await;
    let line = "#relay::clients::8 of 19 streams are up to date; 1 rejects something; 8 have not answered a response for \
                over 10 s; 2 wait for over 10 s for what nobody has answered\n";
    assert!(text.contains(line), "{text}");
    let (_, metrics) = window.get("/metrics").await;
    for sample in [
        "distributary_rejecting_clients{type=\"cds\"} 1",
        "distributary_lagging_clients{type=\"cds\"} 8",
        "distributary_waiting_clients{type=\"cds\"} 0",
        "distributary_rejecting_clients{type=\"eds\"} 0",
        "distributary_lagging_clients{type=\"eds\"} 0",
        "distributary_waiting_clients{type=\"eds\"} 2",
    ] {
        assert!(metrics.lines().any(|line| line == sample), "{sample}: {metrics}");
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
