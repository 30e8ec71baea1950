// SPDX-License-Identifier: Apache-2.0
//! K-25: relays that ask each other in a ring are told so, whichever relay closed it, and whoever asks in it, again and again.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use futures_util::future::join_all;

use crate::messages::wants;
use crate::stage::{Client, Delta, EDS, Relay, directory, eventually, place, until};

/// A rule for relays, and one for all else.
const RULES: &str = "rules: [{name: relays, identities: 'ip:127.0.0.1', relay: true}, {name: all}]\nsecrets: allow\n";
const LOOP: &str = "loop: the request has already come through relay";
/// Within this time whoever asks in a ring is told.
const FOUND: Duration = Duration::from_secs(20);

/// Relays each of which asks the next one for the names of an authority, and files for all else.
struct Ring {
    transport: &'static str,
    rules: &'static str,
    files: PathBuf,
    relays: Vec<Relay>,
}

impl Ring {
    /// Starts a closed ring, or one whose last relay asks files in place of the first one.
    fn start(size: usize, transport: &'static str, rules: &'static str, closed: bool) -> Self {
        let name = format!("ring-{size}-{transport}-{}-{closed}", rules.len());
        let places: Vec<SocketAddr> = (0..size).map(|_| place()).collect();
        let files = directory(&name);
        std::fs::write(files.join("none.yaml"), "[]").unwrap();
        let mut ring = Self {
            transport,
            rules,
            files,
            relays: Vec::new(),
        };
        for at in 0..size {
            let next = (closed || at + 1 < size).then(|| places[(at + 1) % size]);
            let text = ring.configuration(places[at], next);
            ring.relays.push(Relay::run(&format!("{name}-{at}"), &text));
        }
        ring
    }

    /// The configuration of a relay that asks this next one; none: the files.
    fn configuration(&self, own: SocketAddr, next: Option<SocketAddr>) -> String {
        let (files, transport, rules) = (self.files.display(), self.transport, self.rules);
        let asked = match next {
            Some(next) => format!("server_uri: '{next}', transport: {transport}"),
            None => format!("server_uri: '{files}'"),
        };
        format!(
            "upstream: {{xds_servers: [{{server_uri: '{files}'}}], authorities: {{x: {{xds_servers: [{{{asked}}}]}}}}}}\nlisteners: [{{address: '{own}'}}]\nadmin: {{address: '127.0.0.1:0'}}\ntimers: {{unanswered: 2s}}\n{rules}"
        )
    }

    /// The last relay asks the first one from now on.
    fn close(&self) {
        let (last, first) = (self.relays.last().unwrap(), self.relays.first().unwrap());
        last.reload(&self.configuration(last.address, Some(first.address)));
    }

    /// Asks a relay for a name of the authority.
    async fn asks(&self, at: usize, name: &str) -> Delta {
        let name = format!("xdstp://x/envoy.config.endpoint.v3.ClusterLoadAssignment/{name}");
        let asking = wants(EDS, &[&name]);
        Client::connect(self.relays[at].address).await.open(&asking).await
    }

    /// How many streams of clients a relay has.
    fn streams(&self, at: usize) -> u32 {
        let metrics = self.relays[at].admin("/metrics");
        let counts = metrics.lines().filter(|line| line.starts_with("distributary_streams{"));
        counts
            .map(|line| line.rsplit(' ').next().unwrap().parse::<u32>().unwrap())
            .sum()
    }

    /// All relays of the ring are asked, and asked again for what another one was asked for.
    async fn is_found(&self) {
        for round in 0..2 {
            let askers = (0..self.relays.len()).map(async |at| {
                let stream = self.asks(at, &format!("name-{}", at + round)).await;
                let told = tokio::time::timeout(FOUND, told(stream)).await;
                let told = told.unwrap_or_else(|_| panic!("{round} {at}: nobody is told"));
                assert!(told.contains(LOOP), "{round} {at}: {told}");
            });
            join_all(askers).await;
        }
        assert!(self.is_shown());
    }

    /// Whether a relay shows that it is refused.
    fn is_shown(&self) -> bool {
        self.relays.iter().any(|relay| relay.admin("/clusters").contains(LOOP))
    }
}

/// The first error of a name, or of the stream.
async fn told(mut stream: Delta) -> String {
    loop {
        let response = match stream.message_or_end().await {
            Ok(response) => response,
            Err((_, words)) => return words,
        };
        if let Some(error) = response.resource_errors.first() {
            return error.error_detail.clone().unwrap_or_default().message;
        }
    }
}

/// Rings of two, three and four relays, with and without rules, in both dialects.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rings_of_any_size() {
    let rings = [(2, "sotw", RULES), (3, "sotw", ""), (4, "delta", RULES)];
    let found = rings.map(async |(size, transport, rules)| {
        Ring::start(size, transport, rules, true).is_found().await;
    });
    join_all(found).await;
}

/// The last relay closes the ring while all streams are silent. What it asks does not come through the first one yet as far as it was told,
/// because the second one asked it before the first one asked that, and nobody asks for anything new.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_ring_that_is_closed_while_all_is_idle() {
    for transport in ["delta", "sotw"] {
        let ring = Ring::start(3, transport, "", false);
        let _second = ring.asks(1, "1").await;
        until("the third relay is asked", || ring.streams(2) == 1).await;
        let _first = ring.asks(0, "1").await;
        until("the second relay is asked", || ring.streams(1) == 2).await;
        ring.close();
        let found = eventually("the ring is found", || ring.is_shown().then_some(()));
        let found = tokio::time::timeout(FOUND, found).await;
        let pages = || {
            ring.relays
                .iter()
                .map(|relay| relay.admin("/clusters") + &relay.admin("/clients"))
        };
        assert!(found.is_ok(), "{transport}: {}", pages().collect::<String>());
        ring.is_found().await;
    }
}
