//! Variants that a client may hold, although nobody knows: it rejected them, or asked for something else while they were on their way.
//!
//! Owns that each of them goes by its full name all the same (C-23, C-25).

use distributary::proto::envoy::service::discovery::v3::DeltaDiscoveryRequest;
use distributary::protocol::Response;
use distributary::xds::{Dialect, Reason, Update};

use super::everything::{TTL, rejects};
use super::stage::{CDS, Stage};

const PROD: Option<&str> = Some("prod");
const TEST: Option<&str> = Some("test");

/// A view with a variant of `a` for clients in production, which was asked for by name.
fn stage() -> Stage {
    let mut stage = Stage::of(CDS, Dialect::Delta).reading(TTL);
    let own = stage.put("a[prod]=1");
    stage.publish(vec![own]);
    stage
}

fn gives_up(stage: &mut Stage, name: &str) {
    let request = DeltaDiscoveryRequest {
        resource_names_unsubscribe: vec![name.to_owned()],
        ..Default::default()
    };
    stage.says(PROD, request);
}

fn accepts(stage: &mut Stage, env: Option<&str>, response: &Response) {
    let yes = DeltaDiscoveryRequest {
        response_nonce: response.nonce.to_string(),
        ..Default::default()
    };
    stage.says(env, yes);
}

/// It holds the variant for clients in production from another stream.
fn comes_back(stage: &mut Stage, env: Option<&str>) {
    let held = stage.read("a[prod]=1").version().to_string();
    let back = DeltaDiscoveryRequest {
        resource_names_subscribe: vec!["a".to_owned()],
        initial_resource_versions: [("a".to_owned(), held)].into(),
        ..Default::default()
    };
    stage.says(env, back);
}

/// K-17: what it held before it rejected a heartbeat.
#[test]
fn what_it_rejects_the_heartbeat_of() {
    let mut stage = stage();
    let mortal = stage.put_for("a[prod]=1", 60, 1);
    stage.publish(vec![mortal]);
    stage.subscribes(PROD);
    assert_eq!(stage.hears(PROD), ["a[prod]=1/60s"]);
    let (beat, other) = (stage.put_for("a[prod]=1", 60, 2), stage.put("a=2"));
    stage.publish(vec![beat]);
    rejects(&mut stage);
    stage.publish(vec![other]);
    stage.becomes(TEST);
    assert_eq!(stage.hears(TEST), ["a=2 -a[prod]"]);
}

/// A stage whose wildcard has something else.
fn covering_stage() -> Stage {
    let mut stage = stage();
    let covered = stage.put("b=2");
    stage.cover(vec![covered]);
    stage
}

/// C-08: what it rejected, and then gave up under a wildcard without it.
#[test]
fn what_it_rejected_and_gives_up() {
    let mut stage = covering_stage();
    stage.subscribes_to(PROD, "*");
    assert_eq!(stage.hears(PROD), ["b=2"]);
    stage.subscribes(PROD);
    rejects(&mut stage);
    gives_up(&mut stage, "a");
    assert_eq!(stage.hears(PROD), ["-a[prod]"]);
}

/// C-13: what was on its way when a wildcard began that does not have it.
#[test]
fn what_is_on_its_way_when_a_wildcard_begins() {
    let mut stage = covering_stage();
    stage.subscribes(PROD);
    let late = stage.response().expect("a response");
    gives_up(&mut stage, "a");
    stage.subscribes_to(PROD, "*");
    accepts(&mut stage, PROD, &late);
    assert_eq!(stage.hears(PROD), ["b=2 -a[prod]"]);
}

/// B-16: what was on its way when it was given up and asked for again, with other parameters.
#[test]
fn what_is_on_its_way_when_it_is_asked_for_again() {
    let mut stage = stage();
    let other = stage.put("a=2");
    stage.publish(vec![other]);
    stage.subscribes(PROD);
    assert_eq!(stage.response().expect("a response").batch.items().len(), 1);
    gives_up(&mut stage, "a");
    stage.subscribes(TEST);
    assert_eq!(stage.hears(TEST), ["a=2 -a[prod]"]);
}

/// B-15: what was on its way when it was given up and its collection was asked for, with other parameters.
#[test]
fn what_is_on_its_way_when_its_collection_is_asked_for() {
    let (member, collection) = [
        "xdstp://x/envoy.config.cluster.v3.Cluster/d/a",
        "xdstp://x/envoy.config.cluster.v3.Cluster/d/*",
    ]
    .into();
    let mut stage = Stage::of(CDS, Dialect::Delta);
    stage.served("x");
    let all = vec![
        stage.put(&format!("{member}[prod]=1")),
        stage.put(&format!("{member}=2")),
    ];
    stage.publish(all);
    stage.subscribes_to(PROD, member);
    let late = stage.response().expect("a response");
    gives_up(&mut stage, member);
    stage.subscribes_to(TEST, collection);
    accepts(&mut stage, TEST, &late);
    assert_eq!(stage.hears(TEST), [format!("{member}=2 -{member}[prod]")]);
}

/// C-25: what it held when it rejected another variant in its place.
#[test]
fn what_it_rejects_the_replacement_of() {
    let mut stage = stage();
    let others = vec![stage.put("a[test]=2"), stage.put("a=3")];
    stage.publish(others);
    stage.subscribes(PROD);
    assert_eq!(stage.hears(PROD), ["a[prod]=1"]);
    stage.becomes(TEST);
    rejects(&mut stage);
    stage.becomes(None);
    assert_eq!(stage.hears(None), ["a=3 -a[prod] -a[test]"]);
}

/// C-25: what it held when it rejected that it goes, or the resource for everybody in its place.
#[test]
fn what_it_rejects_the_end_of() {
    for replaced in [false, true] {
        let mut stage = stage();
        stage.subscribes(PROD);
        assert_eq!(stage.hears(PROD), ["a[prod]=1"]);
        let (other, own) = (stage.put("a=2"), stage.withdraw("a[prod]"));
        let gone = Update::Absent("a".into(), Reason::Said);
        stage.publish(vec![own, if replaced { other.clone() } else { gone.clone() }]);
        rejects(&mut stage);
        stage.publish(vec![if replaced { gone } else { other }]);
        let expected = if replaced { "-a -a[prod]" } else { "a=2 -a[prod]" };
        assert_eq!(stage.hears(PROD), [expected]);
    }
}

/// C-14: endpoints that it brought along. They are sent in any case.
#[test]
fn what_it_brings_along() {
    for (env, expected) in [(PROD, "a[prod]=1"), (TEST, "a=2 -a[prod]")] {
        let mut stage = Stage::new();
        let all = ["a[prod]=1", "a=2"].map(|text| stage.put(text));
        stage.publish(all.to_vec());
        comes_back(&mut stage, env);
        assert_eq!(stage.hears(env), [expected]);
    }
}

/// C-13, C-23: what it came back with, and what went only after that.
#[test]
fn what_it_came_back_with() {
    let mut stage = stage();
    comes_back(&mut stage, PROD);
    assert!(stage.hears(PROD).is_empty());
    let gone = vec![stage.withdraw("a[prod]"), Update::Absent("a".into(), Reason::Said)];
    stage.publish(gone);
    assert_eq!(stage.hears(PROD), ["-a[prod]"]);
}
