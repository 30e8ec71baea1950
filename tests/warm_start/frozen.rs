// SPDX-License-Identifier: Apache-2.0
//! K-27: a relay whose process is stopped for longer than its timers, while its control plane and its clients go on.

use std::time::Duration;

use distributary::proto::envoy::service::discovery::v3::{DeltaDiscoveryRequest, DeltaDiscoveryResponse};

use crate::messages;
use crate::plane::{Call, Plane};
use crate::stage::{CDS, Client, Delta, EDS, Relay, cluster, clusters, now};

/// Longer than a timer may be late, and than all timers of [`relay`].
const FROZEN: Duration = Duration::from_millis(2500);
/// Several rounds, because the result may depend on which thread of the relay runs first.
const ROUNDS: usize = 3;

fn relay(name: &str, plane: &Plane) -> Relay {
    let timers = "timers: {does_not_exist: 1s, unanswered: 1s, keepalive: 1s, order_gate: 1s, drain: 2s}\n";
    Relay::asks(name, plane.address, timers)
}

fn endpoints(request: &DeltaDiscoveryRequest) -> DeltaDiscoveryResponse {
    let mut response = clusters(&format!("n{}", request.resource_names_subscribe.join(" ")), &[], &[]);
    response.type_url = EDS.to_owned();
    for name in &request.resource_names_subscribe {
        let mut resource = cluster(name, "1");
        if let Some(any) = &mut resource.resource {
            any.type_url = EDS.to_owned();
        }
        response.resources.push(resource);
    }
    response
}

fn wants(name: &str) -> DeltaDiscoveryRequest {
    messages::wants(EDS, &[name])
}

/// The next request that asks for something.
async fn question(call: &mut Call) -> DeltaDiscoveryRequest {
    loop {
        let request = call.delta().await;
        if request.response_nonce.is_empty() {
            return request;
        }
    }
}

/// Stops the relay's process until `meanwhile` has run, and for at least `FROZEN`.
async fn frozen(relay: &Relay, meanwhile: impl FnOnce()) {
    let begun = now();
    relay.signal("-STOP");
    meanwhile();
    // Real time must pass here.
    tokio::time::sleep_until((begun + FROZEN).into()).await;
    relay.signal("-CONT");
}

/// E-08, G-18: the relay reads the responses that came meanwhile before anything counts as missing or unanswered; no stream ends.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_said_meanwhile_is_heard() {
    let mut plane = Plane::start().await;
    let relay = relay("frozen", &plane);
    let client = Client::connect(relay.address).await;
    let mut call: Option<Call> = None;
    for round in 0..ROUNDS {
        let name = format!("e{round}");
        // A stream without a first response would end if the relay counted its request as unanswered.
        let mut fresh: Delta = client.open(&wants(&name)).await;
        let call = match &mut call {
            Some(call) => call,
            none => none.insert(plane.call().await),
        };
        let asked = question(call).await;
        assert_eq!(asked.resource_names_subscribe, [name.as_str()]);
        frozen(&relay, || call.send(&endpoints(&asked))).await;
        let got = fresh.first().await;
        assert_eq!((got.versions.len(), got.removed.len()), (1, 0), "round {round}");
        assert!(got.versions.contains_key(&name));
    }
    assert!(relay.admin("/metrics").contains("distributary_unanswered_total 0"));
    relay.line("the process did not run");
}

/// For so long the relay runs before it is stopped: far longer than a change may take afterwards.
const UP: Duration = Duration::from_secs(12);
/// A change takes at most two seconds, however long the relay ran before. A busy machine makes some more of them.
const CHANGE: Duration = Duration::from_secs(8);

/// A control plane, a relay, and a client that asks for all clusters and for one assignment after the other.
struct Traffic {
    relay: Relay,
    client: Delta,
    call: Call,
    /// The call ends with this.
    _plane: Plane,
    round: usize,
}

impl Traffic {
    async fn begin(name: &str) -> Self {
        let mut plane = Plane::start().await;
        let relay = Relay::asks(name, plane.address, "");
        let mut client: Delta = Client::connect(relay.address).await.open(&state_of_all()).await;
        let mut call = plane.call().await;
        assert_eq!(question(&mut call).await.type_url, CDS);
        // So many that one of them may go (D-10).
        let names: Vec<String> = (0..40).map(|number| format!("stays{number}")).collect();
        let stay = names.iter().map(|name| (name.as_str(), "1"));
        let all: Vec<_> = stay.chain([("c0", "1")]).collect();
        call.send(&clusters("n0", &all, &[]));
        assert_eq!(client.next().await.versions.len(), all.len());
        client.says(&wants("e0"));
        let asked = question(&mut call).await;
        call.send(&endpoints(&asked));
        assert_eq!(client.next().await.versions.len(), 1);
        Self {
            relay,
            client,
            call,
            _plane: plane,
            round: 0,
        }
    }

    /// A cluster comes, another one goes, and an assignment is asked for that nobody has asked for before.
    async fn change(&mut self) {
        self.round += 1;
        let (new, old) = (format!("c{}", self.round), format!("c{}", self.round - 1));
        self.call.send(&clusters(&new, &[(&new, "1")], &[&old]));
        let (mut came, mut gone) = (false, false);
        while !(came && gone) {
            let got = self.client.next().await;
            came |= got.versions.contains_key(&new);
            gone |= got.removed.contains(&old);
        }
        self.client.says(&wants(&new));
        let asked = question(&mut self.call).await;
        assert_eq!(asked.resource_names_subscribe, [new.as_str()]);
        self.call.send(&endpoints(&asked));
        assert!(self.client.next().await.versions.contains_key(&new));
    }

    /// Changes one after the other for so long.
    async fn run(&mut self, time: Duration) {
        let begun = now();
        while begun.elapsed() < time {
            let changed = tokio::time::timeout(CHANGE, self.change()).await;
            assert!(changed.is_ok(), "change {} did not arrive", self.round);
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// For how long the relay says that it runs, in whole seconds.
    fn uptime(&self) -> u64 {
        let info = self.relay.admin("/server_info");
        let (_, rest) = info.split_once("\"uptime_current_epoch\"").unwrap();
        let digits: String = rest
            .chars()
            .skip_while(|c| !c.is_ascii_digit())
            .take_while(char::is_ascii_digit)
            .collect();
        digits.parse().unwrap()
    }
}

fn state_of_all() -> DeltaDiscoveryRequest {
    messages::wants(CDS, &[])
}

/// A relay that has run for long and is stopped for a moment loses that moment, and no more: changes, removals and new names arrive as
/// before, and it knows for how long it has run. Beside it the same without a stop.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_moment_costs_a_moment() {
    let story = async |name: &str, stop: bool| {
        let mut traffic = Traffic::begin(name).await;
        let begun = now();
        traffic.run(UP).await;
        if stop {
            frozen(&traffic.relay, || {}).await;
        }
        traffic.run(Duration::from_secs(3)).await;
        let ran = begun.elapsed();
        let uptime = traffic.uptime();
        assert!(uptime >= ran.as_secs() - 1, "up for {uptime} s after {ran:?}");
        let times = traffic.relay.number("distributary_process_stalls_total ");
        let seconds = traffic.relay.number("distributary_process_stalled_seconds_total ");
        if stop {
            assert!(times >= 1.0 && seconds >= FROZEN.as_secs_f64(), "{times}: {seconds} s");
            traffic.relay.line("the process did not run");
        }
        assert!(seconds < times * 60.0 + 1.0, "{times}: {seconds} s");
    };
    tokio::join!(story("moment", true), story("no-moment", false));
}

/// A relay that is stopped while it starts, while it reads its configuration again, and while it leaves goes on with each.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stopped_at_any_time() {
    let mut plane = Plane::start().await;
    let mut relay = relay("stopped", &plane);
    frozen(&relay, || {}).await;
    let mut client: Delta = Client::connect(relay.address).await.open(&state_of_all()).await;
    let mut call = plane.call().await;
    question(&mut call).await;
    call.send(&clusters("n1", &[("a", "1")], &[]));
    assert_eq!(client.next().await.versions.len(), 1);
    relay.signal("-HUP");
    frozen(&relay, || call.send(&clusters("n2", &[("a", "2")], &[]))).await;
    assert_eq!(client.next().await.versions.len(), 1);
    relay.line("configuration");
    relay.signal("-TERM");
    frozen(&relay, || {}).await;
    client.end().await;
    relay.ends();
}
