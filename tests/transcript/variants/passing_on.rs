//! A relay as a client: it passes variants on, and therefore gets all of them.

use distributary::xds::{Dialect, Reason, Update};

use super::stage::{CDS, EDS, Stage};

const FEATURES: [&str; 3] = [
    "distributary.all-variants",
    "xds.config.resource-in-sotw",
    "xds.config.supports-resource-ttl",
];
const MEMBER: &str = "xdstp://x/envoy.config.endpoint.v3.ClusterLoadAssignment/d/";

fn relay(type_url: &str, dialect: Dialect) -> Stage {
    let stage = Stage::of(type_url, dialect).in_chunks();
    FEATURES.iter().fold(stage, |stage, feature| stage.reading(feature))
}

/// What it is sent: in each response the words in order.
fn hears(stage: &mut Stage) -> Vec<String> {
    let sorted = |said: String| {
        let mut words: Vec<&str> = said.split_whitespace().collect();
        words.sort_unstable();
        words.join(" ")
    };
    stage.hears(None).into_iter().map(sorted).collect()
}

/// F-16: all variants of a name come in one response, in whatever way it was asked for, and all of them again when one of them
/// comes, changes or goes; with the last one the name is removed.
#[test]
fn all_of_a_name_at_once() {
    for asked in ["a", "*"] {
        let mut stage = relay(EDS, Dialect::Delta);
        let news = |stage: &mut Stage, updates: Vec<Update>| {
            if asked == "*" {
                stage.cover(updates);
            } else {
                stage.publish(updates);
            }
            hears(stage)
        };
        let first = ["a=1", "a[prod]=2", "a[test]=3"].map(|text| stage.put(text));
        news(&mut stage, first.to_vec());
        stage.subscribes_to(None, asked);
        assert_eq!(hears(&mut stage), ["a=1 a[prod]=2 a[test]=3"], "{asked}");
        // Its own parameters are not those of its clients.
        stage.becomes(Some("prod"));
        assert!(hears(&mut stage).is_empty());
        let changed = vec![stage.put("a[prod]=4")];
        assert_eq!(news(&mut stage, changed), ["a=1 a[prod]=4 a[test]=3"]);
        let changed = vec![stage.put("a=5"), stage.withdraw("a[prod]=4")];
        assert_eq!(news(&mut stage, changed), ["a=5 a[test]=3"]);
        let gone = vec![stage.withdraw("a=5")];
        assert_eq!(news(&mut stage, gone), ["a[test]=3"]);
        let plain = vec![stage.put("a=6"), stage.withdraw("a[test]=3")];
        assert_eq!(news(&mut stage, plain), ["a=6"]);
        let last = vec![stage.put("a[prod]=7"), stage.withdraw("a=6")];
        assert_eq!(news(&mut stage, last), ["a[prod]=7"]);
        let mut gone = vec![stage.withdraw("a[prod]=7")];
        if asked == "a" {
            gone.push(Update::Absent("a".into(), Reason::Said));
        }
        assert_eq!(news(&mut stage, gone), ["-a"]);
    }
}

/// F-16: in SotW each of them is in the wrapper, and so is the variant without constraints beside them.
#[test]
fn in_state_of_the_world() {
    for (type_url, asked) in [(CDS, "*"), (CDS, "a"), (EDS, "*"), (EDS, "a")] {
        let mut stage = relay(type_url, Dialect::Sotw);
        let updates = ["a=1", "a[prod]=2"].map(|text| stage.put(text));
        match asked {
            "*" => stage.cover(updates.to_vec()),
            _ => stage.publish(updates.to_vec()),
        }
        stage.subscribes_to(None, asked);
        assert_eq!(hears(&mut stage), ["a=1 a[prod]=2"], "{type_url} {asked}");
        let changed = vec![stage.withdraw("a[prod]=2"), stage.put("a[test]=3")];
        match asked {
            "*" => stage.cover(changed),
            _ => stage.publish(changed),
        }
        assert_eq!(hears(&mut stage), ["a=1 a[test]=3"], "{type_url} {asked}");
    }
}

/// F-10, F-16: members of a collection too, including members that have only variants with constraints.
#[test]
fn members_of_a_collection() {
    let mut stage = relay(EDS, Dialect::Delta);
    stage.served("x");
    let member = |stage: &Stage, name: &str, env: &str, body: &str| {
        Update::Put(stage.called(&format!("{MEMBER}{name}"), env, body), None)
    };
    let all = vec![
        member(&stage, "a", "", "1"),
        member(&stage, "a", "prod", "2"),
        member(&stage, "b", "test", "3"),
        Update::Whole(format!("{MEMBER}*").as_str().into()),
    ];
    stage.publish(all);
    stage.subscribes_to(None, &format!("{MEMBER}*"));
    let heard = hears(&mut stage).join(" ").replace(MEMBER, "$");
    assert_eq!(heard, "$a=1 $a[prod]=2 $b[test]=3");
}

/// K-17: each carries its remaining time to live; when one of them is confirmed, all are sent again, and never as a heartbeat.
#[test]
fn each_with_its_life() {
    let mut stage = relay(EDS, Dialect::Delta);
    let all = vec![
        stage.put("a=1"),
        stage.put_for("a[prod]=2", 20, 1),
        stage.put_for("a[test]=3", 30, 1),
    ];
    stage.publish(all);
    stage.subscribes(None);
    assert_eq!(hears(&mut stage), ["a=1 a[prod]=2/20s a[test]=3/30s"]);
    let confirmed = vec![stage.put_for("a[test]=3", 60, 2)];
    stage.publish(confirmed);
    assert_eq!(hears(&mut stage), ["a=1 a[prod]=2/20s a[test]=3/60s"]);
    let ended = vec![stage.withdraw("a[prod]=2")];
    stage.publish(ended);
    assert_eq!(hears(&mut stage), ["a=1 a[test]=3/60s"]);
}

/// JSON has no field for the constraints of a resource.
#[test]
fn polls_get_what_is_for_everybody() {
    let mut stage = relay(EDS, Dialect::Sotw);
    let all = ["a=1", "a[prod]=2"].map(|text| stage.put(text));
    stage.publish(all.to_vec());
    assert_eq!(stage.polls(None, Some("a")), ["1"]);
}
