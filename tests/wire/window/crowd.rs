// SPDX-License-Identifier: Apache-2.0
//! Many readers of a list of many clients.

use std::time::Duration;

use distributary::xds::Dialect;
use futures_util::future::join_all;
use tokio::time::sleep;

use super::{Window, client_of};
use crate::support::{EDS, Relay, now};

/// How many clients are listed, unless the environment says how many.
const CLIENTS: usize = 1000;
const READERS: usize = 30;
const STREAMS_PER_CONNECTION: usize = 50;

/// While 30 readers take the list of all clients at once, a probe is answered in a fraction of the time that their lists take.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_of_a_long_list_hold_up_no_probe() {
    let many = std::env::var("DISTRIBUTARY_TEST_CLIENTS").map_or(CLIENTS, |many| many.parse().unwrap());
    let relay = Relay::start();
    let window = Window::of(&relay);
    relay.put(EDS, &["a"], "1");
    let mut clients = Vec::new();
    while clients.len() < many {
        let connection = relay.connect().await;
        for _ in 0..STREAMS_PER_CONNECTION.min(many - clients.len()) {
            let id = format!("edge-{}", clients.len());
            let mut one = client_of(&connection, Dialect::Delta, EDS, &id).await;
            one.subscribe(&["a"]);
            one.take().await;
            clients.push(one);
        }
    }
    let began = now();
    let lists = join_all((0..READERS).map(|_| list(&window, many)));
    tokio::pin!(lists);
    let (mut longest, mut probes) = (Duration::ZERO, 0);
    loop {
        let asked = now();
        tokio::select! {
            _ = &mut lists => break,
            (status, _) = window.get("/ready") => assert_eq!(status, 200),
        }
        longest = longest.max(asked.elapsed());
        probes += 1;
        sleep(Duration::from_millis(5)).await;
    }
    let all = began.elapsed();
    println!("{many} clients: {READERS} lists in {all:?}, {probes} probes, the longest {longest:?}");
    assert!(longest < all / 5 && probes >= 5, "{longest:?} of {all:?}");
}

/// Takes the whole list. Who is told that others ask, asks again.
async fn list(window: &Window, many: usize) {
    loop {
        let (status, text) = window.get("/clients?format=json").await;
        if status == 503 {
            sleep(Duration::from_millis(100)).await;
            continue;
        }
        assert_eq!((status, text.matches("\"stream\":").count()), (200, many));
        assert!(text.ends_with("\"more\":false,\"unanswered\":0}\n"));
        return;
    }
}
