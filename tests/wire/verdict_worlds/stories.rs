//! What has happened to users of control planes, with a relay between, and once without verdicts.

use distributary::xds::{Dialect, TypeUrl, Update};

use super::agent::{Agent, Software, name};
use crate::support::{Relay, resource, until};

const SDS: &str = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret";
const RDS: &str = "type.googleapis.com/envoy.config.route.v3.RouteConfiguration";
const OLD: &str = "1.37.0";
const NEW: &str = "1.38.0";

fn start(after: usize) -> Relay {
    Relay::with(|plan| plan.verdict_after = after)
}

fn put(relay: &Relay, type_url: &'static str, contents: &[String]) {
    let of = TypeUrl::new(type_url);
    let put = |content: &String| Update::Put(resource(&of, name(content), content.as_bytes()), None);
    relay.publish(&of, contents.iter().map(put).collect());
}

/// Waits until a client has accepted these.
async fn accepts(agent: &Agent, contents: &[String]) {
    let has = || {
        let held = agent.held.lock();
        let mut all = contents.iter();
        all.all(|content| held.accepted.get(name(content)) == Some(content))
    };
    until(has, || {
        format!("{}: {contents:?} wanted: {:?}", agent.id, agent.held.lock())
    })
    .await;
}

async fn condemns(relay: &Relay, count: usize) {
    until(
        || relay.view().head().condemned().len() == count,
        || format!("{count} wanted"),
    )
    .await;
}

/// envoy gateway #9463: one bad key among 32 secrets. Envoy stops at the first watch that fails, and the others are lost, on new pods
/// too.
#[tokio::test]
async fn one_bad_key_among_many_secrets() {
    let names: Vec<String> = (0..32).map(|number| format!("s{number:02}")).collect();
    let asked: Vec<&str> = names.iter().map(String::as_str).collect();
    let good: Vec<String> = names.iter().map(|name| format!("{name} 1")).collect();
    for dialect in [Dialect::Sotw, Dialect::Delta] {
        for after in [2, 0] {
            let software = Software {
                dialect,
                type_url: SDS,
                version: OLD,
                blames: true,
            };
            let relay = start(after);
            put(&relay, SDS, &good);
            let mut pods = Vec::new();
            for id in ["one", "two"] {
                let pod = Agent::come(&relay, software, id, &asked).await;
                accepts(&pod, &good).await;
                pods.push(pod);
            }
            put(&relay, SDS, &[format!("s07 2 !{OLD}"), "s08 2".to_owned()]);
            for pod in &pods {
                accepts(pod, &["s08 2".to_owned(), "s07 1".to_owned()]).await;
            }
            if after == 0 {
                let rejects = |pod: &Agent| pod.held.lock().rejected.contains_key("s07");
                until(|| pods.iter().all(rejects), || "no rejection".to_owned()).await;
            }
            condemns(&relay, usize::from(after > 0)).await;
            let newcomer = Agent::come(&relay, software, "three", &asked).await;
            let mut all: Vec<String> = good.iter().filter(|one| name(one) != "s08").cloned().collect();
            all.push("s08 2".to_owned());
            if after == 0 {
                // All others come, but not the one that its listener waits for.
                all.retain(|one| name(one) != "s07");
                accepts(&newcomer, &all).await;
                assert!(!newcomer.held.lock().accepted.contains_key("s07"));
                continue;
            }
            accepts(&newcomer, &all).await;
            assert!(newcomer.held.lock().rejected.is_empty());
            // The repaired key reaches all.
            put(&relay, SDS, &["s07 3".to_owned()]);
            for pod in pods.iter().chain([&newcomer]) {
                accepts(pod, &["s07 3".to_owned()]).await;
            }
        }
    }
}

/// kgateway #14264: after a rejection nothing is delivered any more, though the route was mended. It reaches all: those that rejected
/// it, those that came since and were served the older one, and those that took it.
#[tokio::test]
async fn the_mended_route_reaches_all() {
    for dialect in [Dialect::Sotw, Dialect::Delta] {
        let old = Software {
            dialect,
            type_url: RDS,
            version: OLD,
            blames: true,
        };
        let relay = start(2);
        let good = ["r 1".to_owned()];
        put(&relay, RDS, &good);
        let mut gateways = Vec::new();
        for (id, version) in [("one", OLD), ("two", OLD), ("new", NEW)] {
            let gateway = Agent::come(&relay, Software { version, ..old }, id, &["r"]).await;
            accepts(&gateway, &good).await;
            gateways.push(gateway);
        }
        let broken = [format!("r 2 !{OLD}")];
        put(&relay, RDS, &broken);
        condemns(&relay, 1).await;
        accepts(&gateways[2], &broken).await;
        let newcomer = Agent::come(&relay, old, "three", &["r"]).await;
        accepts(&newcomer, &good).await;
        gateways.push(newcomer);
        // Broken in another way, and then mended.
        put(&relay, RDS, &[format!("r 3 !{OLD}")]);
        let rejects = |gateway: &Agent| {
            gateway
                .held
                .lock()
                .rejected
                .get("r")
                .is_some_and(|one| one.starts_with("r 3"))
        };
        let all_reject = || gateways.iter().filter(|one| one.version == OLD).all(rejects);
        until(all_reject, || "no rejection".to_owned()).await;
        condemns(&relay, 1).await;
        for (id, content) in [("four", "r 1"), ("five", "r 1")] {
            let late = Agent::come(&relay, old, id, &["r"]).await;
            accepts(&late, &[content.to_owned()]).await;
            gateways.push(late);
        }
        put(&relay, RDS, &["r 4".to_owned()]);
        for gateway in &gateways {
            accepts(gateway, &["r 4".to_owned()]).await;
            assert_eq!(gateway.held.lock().repeated, [""; 0], "{}", gateway.id);
        }
        condemns(&relay, 0).await;
    }
}
