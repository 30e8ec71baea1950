// SPDX-License-Identifier: Apache-2.0
//! The state machine of a polled server, without a server.

use std::sync::Arc;
use std::time::{Duration, Instant};

use distributary::proto::envoy::config::cluster::v3::Cluster;
use distributary::proto::envoy::config::core::v3::Node;
use distributary::proto::envoy::service::discovery::v3::DiscoveryResponse;
use distributary::proto::google::protobuf::Any;
use distributary::protocol::{Client, ClientSettings};
use distributary::upstream::Poller;
use distributary::xds::{Dialect, Name, Target, TypeUrl, Want};
use prost::Message;

const CDS: &str = "type.googleapis.com/envoy.config.cluster.v3.Cluster";
const LDS: &str = "type.googleapis.com/envoy.config.listener.v3.Listener";

fn want(poller: &mut Poller, name: &str, now: Instant) {
    want_of(poller, CDS, name, now);
}

fn want_of(poller: &mut Poller, type_url: &str, name: &str, now: Instant) {
    let want = Want {
        type_url: TypeUrl::new(type_url),
        target: Target::Name(Name::from(name)),
        wanted: true,
        written: None,
    };
    poller.handle_want(&want, now);
}

fn answer(poller: &mut Poller, names: &[&str], now: Instant) {
    let cluster = |name: &&str| Any {
        type_url: CDS.to_owned(),
        value: Cluster {
            name: (*name).to_owned(),
            ..Cluster::default()
        }
        .encode_to_vec()
        .into(),
    };
    let response = DiscoveryResponse {
        version_info: "1".to_owned(),
        resources: names.iter().map(cluster).collect(),
        ..DiscoveryResponse::default()
    };
    poller.handle_answer(&TypeUrl::new(CDS), Some(response), 0.5, now);
}

/// The version that the next poll carries.
fn asked(poller: &mut Poller, now: Instant) -> Option<String> {
    poller.handle_timeout(now);
    while poller.poll_refusal(now).is_some() {}
    poller.poll_question(now).map(|question| question.request.version_info)
}

const INTERVAL: Duration = Duration::from_secs(10);
const RECONNECT_MAX: Duration = Duration::from_secs(8);

#[expect(clippy::disallowed_methods, reason = "some instant to begin from")]
fn poller() -> (Poller, Instant) {
    let settings = ClientSettings {
        types: Default::default(),
        relay_id: "relay".to_owned(),
        does_not_exist: Duration::from_secs(15),
        wildcard_quiet: Duration::from_millis(250),
        features: Default::default(),
    };
    let client = Client::new(Arc::new(settings), Dialect::Sotw, Node::default());
    (Poller::new(client, INTERVAL, RECONNECT_MAX), Instant::now())
}

/// H-07: a version belongs to the names that the poll asked for, and to all that was used of its answer. After an answer that was
/// refused, the next poll has no version: a server that compares only versions, and goes back to the former content, would answer
/// "not modified".
#[test]
fn a_refused_answer_leaves_no_version() {
    let (mut poller, mut now) = poller();
    want(&mut poller, "a", now);
    assert_eq!(asked(&mut poller, now).as_deref(), Some(""));
    answer(&mut poller, &["a"], now);
    want(&mut poller, "b", now);
    assert_eq!(asked(&mut poller, now).as_deref(), Some(""));
    // E-12: an answer with a duplicate is refused.
    answer(&mut poller, &["a", "b", "b"], now);
    now += INTERVAL * 2;
    assert_eq!(asked(&mut poller, now).as_deref(), Some(""));
    answer(&mut poller, &["a", "b"], now);
    now += INTERVAL * 2;
    assert_eq!(asked(&mut poller, now).as_deref(), Some("1"));
    // E-13: "c" is used, though the answer is refused.
    answer(&mut poller, &["a", "b", "b", "c"], now);
    now += INTERVAL * 2;
    assert_eq!(asked(&mut poller, now).as_deref(), Some(""));
}

/// G-12, L-20: an answer that still waits for other types when another server takes over leaves no version either: the next poll
/// asks for it anew.
#[test]
fn news_from_before_another_server_stood_in() {
    let (mut poller, now) = poller();
    want(&mut poller, "a", now);
    want_of(&mut poller, LDS, "l", now);
    assert_eq!(asked(&mut poller, now).as_deref(), Some(""));
    assert_eq!(asked(&mut poller, now).as_deref(), Some(""));
    answer(&mut poller, &["a"], now);
    poller.handle_superseded();
    poller.handle_answer(&TypeUrl::new(LDS), None, 0.5, now);
    assert_eq!(asked(&mut poller, now).as_deref(), Some(""));
    answer(&mut poller, &["a"], now);
    assert_eq!(asked(&mut poller, now + INTERVAL * 2).as_deref(), Some("1"));
}

/// Returns how long it waits after another failed poll of clusters.
fn fails(poller: &mut Poller, alone: bool, now: Instant) -> u128 {
    let (wait, _) = poller.handle_failure(&TypeUrl::new(CDS), "no".to_owned(), alone, 0.5, now);
    wait.as_millis()
}

/// E-14: the pauses after failures grow to the configured maximum; an answer resets them.
#[test]
fn pauses_grow_to_the_most() {
    let (mut poller, now) = poller();
    want(&mut poller, "a", now);
    assert!(asked(&mut poller, now).is_some());
    let waits = [(); 7].map(|()| fails(&mut poller, true, now));
    assert_eq!(waits, [1000, 1600, 2560, 4096, 6553, 8000, 8000]);
    assert!(asked(&mut poller, now + RECONNECT_MAX).is_some());
    answer(&mut poller, &["a"], now);
    assert_eq!(fails(&mut poller, true, now), 1000);
}

/// E-14: while a client waits for a first answer, no pause is longer than five seconds, unless the server fails for this type
/// alone; a client that comes during a longer pause shortens it.
#[test]
fn who_waits_shortens_a_pause() {
    let (mut poller, mut now) = poller();
    want(&mut poller, "a", now);
    assert!(asked(&mut poller, now).is_some());
    let waits = [(); 7].map(|()| fails(&mut poller, false, now));
    assert_eq!(waits, [1000, 1600, 2560, 4096, 5000, 5000, 5000]);
    now += RECONNECT_MAX;
    assert!(asked(&mut poller, now).is_some());
    answer(&mut poller, &["a"], now);
    let waits = [(); 6].map(|()| fails(&mut poller, false, now));
    assert_eq!(waits, [1000, 1600, 2560, 4096, 6553, 8000]);
    let soon = now + Duration::from_secs(5);
    assert_eq!(asked(&mut poller, soon), None);
    want(&mut poller, "b", now);
    assert!(asked(&mut poller, soon).is_some());
}

/// G-11: while clients read another server, this one is polled each second, also if a longer pause has begun; unless it fails for a type
/// alone, and until it answers.
#[test]
fn a_preferred_server_is_polled_each_second() {
    let (mut poller, mut now) = poller();
    want(&mut poller, "a", now);
    assert!(asked(&mut poller, now).is_some());
    let waits = [(); 4].map(|()| fails(&mut poller, false, now));
    assert_eq!(waits, [1000, 1600, 2560, 4096]);
    let second = Duration::from_secs(1);
    poller.handle_superseded();
    assert_eq!(asked(&mut poller, now + second - second / 10), None);
    now += second;
    assert!(asked(&mut poller, now).is_some());
    let waits = [(); 4].map(|()| fails(&mut poller, false, now));
    assert_eq!(waits, [1000; 4]);
    assert!(fails(&mut poller, true, now) > 1000);
    now += RECONNECT_MAX;
    assert!(asked(&mut poller, now).is_some());
    answer(&mut poller, &["a"], now);
    let waits = [(); 3].map(|()| fails(&mut poller, false, now));
    assert_eq!(waits, [1000, 1600, 2560]);
}
