// SPDX-License-Identifier: Apache-2.0
//! Many clients that wait at the same time.

use std::time::Duration;

use super::{CLUSTERS, hold, put};
use crate::support::polls::{Poller, request};
use crate::support::{CDS, Relay, now, until};

/// Resident memory of this process, without mapped files.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() * 1024
}

/// K-21: 1,000 waiting polls take little memory, clients included; and one change answers all of them with the same bytes.
#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_wait() {
    const POLLERS: usize = 1000;
    // Client and relay are one process here: two file descriptors for each poll.
    let relay = Relay::with(hold(Duration::from_secs(120)));
    let names: Vec<String> = (0..100).map(|n| format!("cluster-{n}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    put(&relay, CDS, &names, 1);
    let mut first = Poller::connect(relay.port()).await;
    let (version, _) = first.poll(CLUSTERS, &request("", &[])).await.says();
    let before = resident();
    let body = request(&version, &[]);
    let mut pollers = Vec::with_capacity(POLLERS);
    for _ in 0..POLLERS {
        let mut poller = Poller::connect(relay.port()).await;
        poller.send(CLUSTERS, &[], body.as_bytes()).await;
        pollers.push(poller);
    }
    let seats = || relay.view().demand().seats();
    until(|| seats() == POLLERS + 1, seats).await;
    let each = (resident().saturating_sub(before)) / POLLERS;
    let written = relay.shared.library.written();
    let begun = now();
    put(&relay, CDS, &["cluster-5"], 2);
    for poller in &mut pollers {
        assert_eq!(poller.answer().await.status, 200);
    }
    let [texts, replies] = relay.shared.library.written();
    // The others are forgotten if it took long until all waited.
    let made = texts.computed - written[0].computed;
    assert!((1..=names.len() as u64).contains(&made), "{made} texts");
    assert_eq!(replies.computed - written[1].computed, 1);
    println!(
        "{each} bytes for each; a change was with all after {:?}",
        begun.elapsed()
    );
    assert!(each < 40 * 1024, "{each} bytes for each poll that waits");
}
