//! Clients with parameters that ask for everything, or for a whole collection.

use std::collections::BTreeMap;

use distributary::proto::envoy::service::discovery::v3::{DeltaDiscoveryRequest, ResourceLocator};
use distributary::xds::{Dialect, Reason, Update};

use super::stage::{CDS, EDS, SDS, Stage, is};

const WRAPPER: &str = "xds.config.resource-in-sotw";
pub(super) const TTL: &str = "xds.config.supports-resource-ttl";

/// A view of clusters, all of them known: `a` for everybody and for two, `b` for everybody, `c` for one alone.
fn clusters(dialect: Dialect) -> Stage {
    covered(Stage::of(CDS, dialect))
}

fn covered(mut stage: Stage) -> Stage {
    let all = ["a=1", "a[prod]=2", "a[test]=3", "b=4", "c[prod]=5"];
    let all = all.map(|text| stage.put(text));
    stage.cover(all.to_vec());
    stage
}

fn with(name: &str, env: &str) -> ResourceLocator {
    let own = BTreeMap::from([("env".to_owned(), env.to_owned())]);
    ResourceLocator {
        name: name.to_owned(),
        dynamic_parameters: own.into_iter().collect(),
    }
}

/// C-23, F-16: for every name a wildcard brings the variant that the client matches, else the one without constraints; and only
/// changes of those.
#[test]
fn a_wildcard_brings_what_is_for_the_client() {
    for (env, first) in [
        (None, "a=1 b=4"),
        (Some("other"), "a=1 b=4"),
        (Some("test"), "a[test]=3 b=4"),
        (Some("prod"), "a[prod]=2 b=4 c[prod]=5"),
    ] {
        let mut stage = clusters(Dialect::Delta);
        stage.subscribes_to(env, "*");
        assert_eq!(stage.hears(env), [first], "{env:?}");
        let prod = env == Some("prod");
        let only = |heard: &[&str]| {
            if prod {
                heard.iter().map(ToString::to_string).collect()
            } else {
                Vec::new()
            }
        };

        stage.cover(vec![stage.put("a[prod]=6"), stage.put("d[prod]=7")]);
        assert_eq!(stage.hears(env), only(&["a[prod]=6 d[prod]=7"]), "{env:?}");
        // C-23: it is removed by its full name; the variant without constraints takes its place.
        stage.cover(vec![stage.withdraw("a[prod]"), stage.withdraw("c[prod]")]);
        let back: Vec<String> = stage.hears(env);
        assert_eq!(back, only(&["a=1 -a[prod] -c[prod]"]), "{env:?}");
        // The variant without constraints goes, and the others stay.
        stage.cover(vec![stage.withdraw("a")]);
        let gone = if env == Some("test") { Vec::new() } else { vec!["-a"] };
        assert_eq!(stage.hears(env), gone, "{env:?}");
    }
}

/// C-23, C-26, B-01: a client's parameters change with a request for any type: it is sent what differs, a swap in one response,
/// and nothing else.
#[test]
fn a_wildcard_follows_the_client() {
    let mut stage = clusters(Dialect::Delta).in_chunks();
    stage.subscribes_to(Some("prod"), "*");
    assert_eq!(stage.hears(Some("prod")), ["a[prod]=2", "b=4", "c[prod]=5"]);
    stage.becomes(Some("test"));
    assert_eq!(stage.hears(Some("test")), ["a[test]=3 -a[prod]", "-c[prod]"]);
    stage.becomes(None);
    assert_eq!(stage.hears(None), ["a=1 -a[test]"]);
    stage.becomes(Some("other"));
    assert!(stage.hears(Some("other")).is_empty());
    let other_type = DeltaDiscoveryRequest {
        type_url: EDS.to_owned(),
        resource_names_subscribe: vec!["e".to_owned()],
        ..Default::default()
    };
    stage.says(Some("prod"), other_type);
    assert_eq!(stage.hears(Some("prod")), ["a[prod]=2", "c[prod]=5"]);
    // F-16: the parameters sent with the wildcard itself count for it.
    stage.asks(Some("prod"), vec![with("*", "test")]);
    let heard = stage.hears(Some("prod")).join(" ");
    assert_eq!(
        heard, "a[test]=3 -a[prod] b=4 -c[prod]",
        "C-11: and what it has asked for again"
    );
}

/// C-12, C-14: a client that reconnects with what it holds is sent what differs; a variant that went meanwhile is removed by its
/// full name, if its constraints are still known.
#[test]
fn a_client_comes_back() {
    let mut stage = clusters(Dialect::Delta);
    let version = |text: &str| stage.read(text).version().to_string();
    let held = [("a", version("a[prod]=2")), ("b", version("b=4"))];
    let initial_resource_versions = held.map(|(name, version)| (name.to_owned(), version));
    let back = DeltaDiscoveryRequest {
        resource_names_subscribe: vec!["*".to_owned()],
        initial_resource_versions: initial_resource_versions.into_iter().collect(),
        ..Default::default()
    };
    let mut same = clusters(Dialect::Delta);
    same.says(Some("prod"), back.clone());
    assert_eq!(same.hears(Some("prod")), ["c[prod]=5"]);
    stage.says(Some("test"), back);
    assert_eq!(stage.hears(Some("test")), ["a[test]=3 -a[prod]"]);
}

/// B-16, C-23, B-30: a full state lists what is for the client; the constraints are in the wrapper if the client reads it.
#[test]
fn a_full_state_lists_what_is_for_the_client() {
    let mut bare = clusters(Dialect::Sotw);
    bare.becomes(Some("prod"));
    assert_eq!(bare.hears(Some("prod")), ["=2 =4 =5"]);
    bare.cover(vec![bare.put("a[test]=9")]);
    assert!(bare.hears(Some("prod")).is_empty(), "it is for others");
    bare.becomes(Some("test"));
    assert_eq!(bare.hears(Some("test")), ["=9 =4"]);
    bare.becomes(None);
    assert_eq!(bare.hears(None), ["=1 =4"]);

    let mut stage = covered(Stage::of(CDS, Dialect::Sotw).reading(WRAPPER));
    stage.becomes(Some("prod"));
    assert_eq!(stage.hears(Some("prod")), ["a[prod]=2 =4 c[prod]=5"]);
    stage.cover(vec![stage.withdraw("c[prod]"), stage.withdraw("a[prod]")]);
    assert_eq!(stage.hears(Some("prod")), ["=1 =4"]);
}

/// B-18, C-23: where SotW carries only what is new, that holds for a wildcard as well.
#[test]
fn a_wildcard_of_other_types_in_sotw() {
    let mut stage = covered(Stage::of(EDS, Dialect::Sotw).reading(WRAPPER));
    stage.subscribes_to(Some("prod"), "*");
    assert_eq!(stage.hears(Some("prod")), ["a[prod]=2 =4 c[prod]=5"]);
    stage.becomes(Some("test"));
    assert_eq!(stage.hears(Some("test")), ["a[test]=3"]);
}

/// B-18, F-16: what is for others by now is listed beside new secrets, like one that has gone, also if it has a time to live that
/// the client was not told of.
#[test]
fn a_secret_that_is_for_others() {
    let mut stage = Stage::of(SDS, Dialect::Sotw);
    stage.subscribes_to(Some("prod"), "a");
    stage.publish(vec![stage.put_for("a[prod]=1", 60, 1)]);
    assert_eq!(stage.hears(Some("prod")), ["=1"]);
    stage.becomes(Some("test"));
    assert!(stage.hears(Some("test")).is_empty());
    stage.publish(vec![stage.put("b=2")]);
    stage.subscribes_to(Some("test"), "b");
    assert_eq!(stage.hears(Some("test")), ["=1 =2"]);
}

/// K-09: a variant whose name was given up does not count in the version of the set, if no wildcard is known to have it.
#[test]
fn a_variant_given_up_in_sotw() {
    let mut stage = Stage::of(EDS, Dialect::Sotw).reading(WRAPPER);
    stage.subscribes_to(Some("prod"), "*");
    stage.subscribes_to(Some("prod"), "a");
    stage.publish(vec![stage.put("a[prod]=1")]);
    assert_eq!(stage.hears(Some("prod")), ["a[prod]=1"]);
    stage.gives_up(Some("prod"), "a");
    stage.publish(vec![stage.put("b=2")]);
    stage.subscribes_to(Some("prod"), "b");
    let response = stage.response().expect("b");
    assert_eq!(response.version, stage.read("b=2").version());
}

/// C-22, C-23, F-16: a collection brings what is for the client; a name is a member for clients that some variant of it is for.
#[test]
fn a_collection_brings_what_is_for_the_client() {
    for dialect in [Dialect::Delta, Dialect::Sotw] {
        let name = |id: &str| format!("xdstp://x/envoy.config.endpoint.v3.ClusterLoadAssignment/d/{id}");
        let mut stage = Stage::of(EDS, dialect).reading(WRAPPER);
        stage.served("x");
        let all = ["a=1", "a[prod]=2", "b[prod]=3", "c=4"].map(|text| stage.put(&name(text)));
        stage.publish(all.to_vec());
        let whole = Update::Whole(name("*").into());
        stage.publish(vec![whole]);
        stage.subscribes_to(None, &name("*"));
        let short = |heard: Vec<String>| heard.join(" | ").replace(&name(""), "");
        let delta = dialect == Dialect::Delta;
        let either = |said: &str, bare: &str| if delta { said.to_owned() } else { bare.to_owned() };
        // F-09: the bodies here do not have the names, so the wrapper has them.
        assert_eq!(short(stage.hears(None)), "a=1 c=4");
        stage.becomes(Some("prod"));
        assert_eq!(short(stage.hears(Some("prod"))), "a[prod]=2 b[prod]=3");
        let new = vec![stage.put(&name("d[prod]=5")), stage.put(&name("e[test]=6"))];
        stage.publish(new);
        assert_eq!(short(stage.hears(Some("prod"))), "d[prod]=5");
        stage.publish(vec![stage.withdraw(&name("b[prod]")), stage.withdraw(&name("a"))]);
        assert_eq!(short(stage.hears(Some("prod"))), either("-b[prod]", ""));
        stage.becomes(Some("test"));
        assert_eq!(
            short(stage.hears(Some("test"))),
            either("e[test]=6 -a[prod] -d[prod]", "e[test]=6")
        );
        // F-16: the parameters sent with a collection count for its members.
        stage.asks(Some("test"), vec![with(&name("*"), "prod")]);
        let heard = short(stage.hears(Some("test")));
        assert!(heard.contains("a[prod]=2") && heard.contains("d[prod]=5"), "{heard}");
    }
}

/// C-22: a collection without a member for the client is empty for it.
#[test]
fn a_collection_for_others_is_empty() {
    let name = |id: &str| format!("xdstp://x/envoy.config.endpoint.v3.ClusterLoadAssignment/d/{id}");
    let mut stage = Stage::of(EDS, Dialect::Delta);
    stage.served("x");
    let only = stage.put(&name("a[prod]=1"));
    stage.publish(vec![only, Update::Whole(name("*").into())]);
    stage.subscribes_to(Some("test"), &name("*"));
    assert_eq!(stage.hears(Some("test")), [format!("-{}", name("*"))]);
    stage.becomes(Some("prod"));
    assert_eq!(stage.hears(Some("prod")), [name("a[prod]=1")]);
}

/// K-05: a name that the wildcard has, and that is also asked for by itself, is read like the wildcard; parameters sent with the
/// name alone take precedence.
#[test]
fn a_name_beside_the_wildcard() {
    let mut stage = clusters(Dialect::Delta);
    stage.subscribes_to(Some("prod"), "*");
    assert_eq!(stage.hears(Some("prod")), ["a[prod]=2 b=4 c[prod]=5"]);
    stage.asks(Some("prod"), vec![with("a", "test")]);
    assert_eq!(stage.hears(Some("prod")), ["a[test]=3 -a[prod]"]);
    let gone = DeltaDiscoveryRequest {
        resource_names_unsubscribe: vec!["a".to_owned()],
        ..Default::default()
    };
    stage.says(Some("prod"), gone);
    assert_eq!(
        stage.hears(Some("prod")),
        ["a[prod]=2 -a[test]"],
        "C-08: the wildcard still covers it"
    );
}

/// K-17, E-11: each variant has its own time to live.
#[test]
fn a_variant_lives_its_own_life() {
    for (env, first, second) in [
        (None, "a=1/60s", "a/60s"),
        (Some("prod"), "a[prod]=2/30s", "a[prod]/90s"),
        (Some("test"), "a[test]=3", ""),
    ] {
        for name in ["*", "a"] {
            let mut stage = Stage::of(CDS, Dialect::Delta).reading(TTL);
            let all = |stage: &Stage, prod: u64, plain: u64, beat| {
                let plain = stage.put_for("a=1", plain, beat);
                vec![plain, stage.put_for("a[prod]=2", prod, beat), stage.put("a[test]=3")]
            };
            let updates = all(&stage, 30, 60, 1);
            stage.cover(updates.clone());
            stage.publish(updates);
            stage.subscribes_to(env, name);
            assert_eq!(stage.hears(env), [first], "{env:?} {name}");
            let updates = all(&stage, 90, 60, 2);
            stage.cover(updates.clone());
            stage.publish(updates);
            assert_eq!(stage.hears(env).join(" "), second, "{env:?} {name}");
        }
    }
}

/// B-30: in SotW an Envoy is sent a variant bare, and one that has a time to live in the wrapper by its name alone, which it takes
/// from there.
#[test]
fn an_envoy_is_sent_a_variant_by_its_name() {
    for (type_url, name) in [(CDS, "*"), (EDS, "a")] {
        let mut stage = Stage::of(type_url, Dialect::Sotw).running("envoy");
        let all = vec![stage.put("a=1"), stage.put("a[prod]=2")];
        stage.cover(all.clone());
        stage.publish(all);
        stage.subscribes_to(Some("prod"), name);
        assert_eq!(stage.hears(Some("prod")), ["=2"], "{type_url}");
    }
    for name in ["*", "a"] {
        let mut stage = Stage::of(CDS, Dialect::Sotw).running("envoy");
        let all = vec![stage.put("b=1"), stage.put_for("a[prod]=2", 30, 1)];
        stage.cover(all.clone());
        stage.publish(all);
        stage.subscribes_to(Some("prod"), name);
        let heard = stage.hears(Some("prod"));
        assert_eq!(
            heard.first().map(|said| said.split(' ').next()),
            Some(Some("a=2/30s")),
            "{heard:?}"
        );
    }
}

/// C-23, C-26, K-17: a part that had to wait carries the remaining time to live, and no removal by a full name is lost.
#[test]
fn a_part_that_waits_withdraws_as_well() {
    let mut stage = Stage::of(CDS, Dialect::Delta).in_chunks().reading(TTL);
    let all = ["a[prod]=1", "b[prod]=2", "c[prod]=3", "a=4"].map(|text| stage.put(text));
    stage.cover(all.to_vec());
    let mortal = stage.put_for("b=5", 60, 1);
    stage.cover(vec![mortal]);
    stage.subscribes_to(Some("prod"), "*");
    assert_eq!(stage.hears(Some("prod")), ["a[prod]=1", "b[prod]=2", "c[prod]=3"]);
    stage.becomes(None);
    assert_eq!(stage.hears(None), ["a=4 -a[prod]", "b=5/60s -b[prod]", "-c[prod]"]);
}

/// C-15: a name of which there are only variants for others does not exist for the client.
#[test]
fn a_name_for_others_does_not_exist() {
    let mut stage = Stage::new();
    let only = stage.put("a[prod]=1");
    stage.publish(vec![only]);
    stage.subscribes(None);
    assert_eq!(stage.hears(None), ["-a"]);
    stage.becomes(Some("prod"));
    assert_eq!(stage.hears(Some("prod")), ["a[prod]=1"]);
    stage.publish(vec![
        stage.withdraw("a[prod]"),
        Update::Absent("a".into(), Reason::Said),
    ]);
    assert_eq!(stage.hears(Some("prod")), ["-a[prod]"]);
}

/// C-25, C-23: after a rejection the client may still hold the variant, and it is removed by its full name.
#[test]
fn a_rejected_variant_goes_by_its_full_name() {
    let mut stage = Stage::new();
    let all = vec![stage.put("a[prod]=1"), stage.put("a=2")];
    stage.publish(all);
    stage.subscribes(Some("prod"));
    rejects(&mut stage);
    assert!(stage.hears(Some("prod")).is_empty());
    stage.becomes(Some("test"));
    assert_eq!(stage.hears(Some("test")), ["a=2 -a[prod]"]);
}

/// The next response is rejected.
pub(super) fn rejects(stage: &mut Stage) {
    let response = stage.response().expect("a response");
    let no = DeltaDiscoveryRequest {
        response_nonce: response.nonce.to_string(),
        error_detail: Some(proto::google::rpc::Status {
            code: 3,
            ..Default::default()
        }),
        ..Default::default()
    };
    stage.says(Some("prod"), no);
}

/// B-22, C-23: the same if it was sent once more, was given up under the wildcard that brought it, and that loses it.
#[test]
fn a_rejected_variant_that_the_wildcard_loses() {
    let mut stage = Stage::new();
    let all = vec![stage.put("a[prod]=1")];
    stage.cover(all);
    stage.subscribes_to(Some("prod"), "*");
    rejects(&mut stage);
    stage.subscribes(Some("prod"));
    let again = stage.response().expect("a response");
    assert_eq!(again.batch.items().len(), 1);
    let drops = DeltaDiscoveryRequest {
        resource_names_unsubscribe: vec!["a".to_owned()],
        ..Default::default()
    };
    stage.says(Some("prod"), drops);
    let gone = vec![stage.withdraw("a[prod]=1")];
    stage.cover(gone);
    assert_eq!(stage.hears(Some("prod")), ["-a[prod]"]);
}

/// H-06, F-16: a client that polls gets what is for it.
#[test]
fn a_poll_gets_what_is_for_its_client() {
    let mut stage = clusters(Dialect::Sotw);
    let member = "xdstp://x/envoy.config.cluster.v3.Cluster/d/a";
    let collection = "xdstp://x/envoy.config.cluster.v3.Cluster/d/*";
    stage.served("x");
    let members = ["=1", "[prod]=2"].map(|text| stage.put(&format!("{member}{text}")));
    stage.publish(members.to_vec());
    for (env, all, a, c, only) in [
        (None, &["1", "4"][..], "1", &[][..], "1"),
        (Some("prod"), &["2", "4", "5"], "2", &["5"], "2"),
        (Some("test"), &["3", "4"], "3", &[], "1"),
    ] {
        assert_eq!(stage.polls(env, None), all, "{env:?}");
        assert_eq!(stage.polls(env, Some("a")), [a], "{env:?}");
        assert_eq!(stage.polls(env, Some("c")), c, "{env:?}");
        assert_eq!(stage.polls(env, Some(collection)), [only], "{env:?}");
    }
}

/// F-16: names of which the client matches several variants are counted, in whatever way they were asked for.
#[test]
fn several_are_counted() {
    for dialect in [Dialect::Delta, Dialect::Sotw] {
        let mut stage = clusters(dialect);
        let any = stage.variant("a", Some(is("env", None)), "9");
        stage.cover(vec![Update::Put(any, None)]);
        stage.subscribes_to(Some("prod"), "*");
        assert!(stage.response().is_some());
        assert_eq!(stage.server.ambiguous(), 1);
    }
}
