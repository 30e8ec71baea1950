// SPDX-License-Identifier: Apache-2.0
//! Random rules, judged one by one.
//!
//! Owns no rule of its own. Does not know the index by which the relay finds rules.

use super::*;
use crate::TypeUrl;
use classes::Path;

/// Random numbers, the same in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }

    fn some<T: Clone>(&mut self, all: &[T]) -> Vec<T> {
        let count = self.below(3).min(2);
        let at = |random: &mut Self| usize::try_from(random.below(all.len() as u64)).unwrap_or(0);
        (0..count).filter_map(|_| all.get(at(self)).cloned()).collect()
    }
}

const IDENTITIES: [&str; 4] = ["spiffe://td/ns/a/sa/x", "spiffe://td/ns/b/sa/x", "dns:a", "ip:10.0.0.1"];
const IDS: [&str; 4] = ["a-1", "b-1", "c", ""];
const NAMES: [&str; 6] = ["a/x", "a/y", "b/x", "shared", "", "a"];
const TYPES: [&str; 4] = [
    "envoy.config.cluster.v3.Cluster",
    "envoy.config.endpoint.v3.ClusterLoadAssignment",
    "envoy.extensions.transport_sockets.tls.v3.Secret",
    "other.host/envoy.extensions.transport_sockets.tls.v3.Secret",
];

fn patterns(texts: &[&str]) -> Vec<Pattern> {
    texts
        .iter()
        .map(|text| Pattern::read(text).unwrap_or_else(|error| unreachable!("{error}")))
        .collect()
}

fn rule(random: &mut Random) -> AccessRule {
    let identities = patterns(&random.some(&["spiffe://td/ns/{ns}/sa/*", "dns:{ns}", "spiffe://td/ns/{ns}/sa/x"]));
    let fields = !identities.is_empty();
    let (ids, names): (&[&str], &[&str]) = if fields {
        (&["{ns}-*", "a-1", "*"], &["{ns}/*", "shared", "*x", "*"])
    } else {
        (&["a-*", "c", "*1", ""], &["a/*", "shared", "*x", "a"])
    };
    AccessRule {
        name: random.below(1000).to_string(),
        allow: random.below(3) > 0,
        identities,
        ids: patterns(&random.some(ids)),
        clusters: patterns(&random.some(&["edge", "*"])),
        metadata: random
            .some(&["NS", "LABELS.team"])
            .into_iter()
            .map(|path| {
                (
                    Path::new(path.split('.')),
                    patterns(&random.some(if fields { &["{ns}", "a*"] } else { &["b", "*"] })),
                )
            })
            .collect(),
        types: random.some(&TYPES.map(Box::from)).into(),
        names: patterns(&random.some(names)).into(),
        ways: random.some(&Way::ALL),
        relay: false,
    }
}

fn ask(access: &Access, caller: Caller<'_>, type_url: Option<&TypeUrl>, name: Option<&str>) -> Explanation {
    access.explain(&Question { caller, type_url, name })
}

/// S-01, S-05: with any rules, few or many, a client may have what the first rule that matches allows, found by going through all
/// rules one by one; and what is said of whole types and of the stream agrees with that.
#[test]
fn the_first_rule_that_matches_decides() {
    let mut random = Random(19);
    let (mut allowed, mut denied) = (0, 0);
    for world in 0..1_500_u64 {
        let count = [1, 3, 8, 60][usize::try_from(world % 4).unwrap_or(0)];
        let access = Access::new((0..count).map(|_| rule(&mut random)).collect(), random.below(2) == 0);
        let identity = random.some(&IDENTITIES);
        let node = Node {
            id: random.some(&IDS).concat().into(),
            cluster: random.some(&["edge", "core"]).concat().into(),
            metadata: random
                .some(&["NS", "LABELS.team"])
                .into_iter()
                .map(|path| (path.to_owned(), random.some(&["a", "b"]).concat()))
                .collect(),
            ..Node::default()
        };
        let way = *random.some(&Way::ALL).first().unwrap_or(&Way::Sotw);
        let caller = Caller {
            identity: &identity,
            node: &node,
            way,
        };
        let rights = access.rights(&caller);
        assert_eq!(
            rights.is_ok(),
            ask(&access, caller, None, None).allowed,
            "{access:?} {caller:?} {rights:?}"
        );
        let Ok(rights) = rights else { continue };
        for type_url in TYPES.map(TypeUrl::new) {
            let grant = rights
                .as_ref()
                .map_or(Grant::Everything, |rights| rights.grant(&type_url));
            assert_eq!(
                grant != Grant::Nothing,
                ask(&access, caller, Some(&type_url), None).allowed
            );
            let part = rights.as_ref().map(|rights| rights.of_type(&type_url));
            for name in NAMES {
                let may = rights.as_ref().is_none_or(|rights| rights.allow(&type_url, name));
                assert_eq!(may, part.as_ref().is_none_or(|part| part.allow(&type_url, name)));
                let why = ask(&access, caller, Some(&type_url), Some(name));
                assert_eq!(
                    may, why.allowed,
                    "{type_url} {name} {access:?} {caller:?} {rights:?}\n{why}"
                );
                assert!(
                    grant == Grant::Some || may == (grant == Grant::Everything),
                    "{grant:?} {type_url} {name}"
                );
                *(if may { &mut allowed } else { &mut denied }) += 1;
            }
        }
    }
    assert!(allowed > 3_000 && denied > 3_000, "{allowed} {denied}");
}

/// S-01: clients for whom different rules come to the same have equal rights; others do not.
#[test]
fn equal_rights() {
    let of = |ns: &str, names: &str| AccessRule {
        identities: patterns(&[&format!("spiffe://td/ns/{ns}/sa/*")]),
        names: patterns(&[names]).into(),
        ..AccessRule::default()
    };
    let rules = vec![of("a", "x*"), of("b", "x*"), of("{ns}", "{ns}/*")];
    let access = Access::new(rules, true);
    let node = Node::default();
    let rights = |ns: &str| {
        let text = format!("spiffe://td/ns/{ns}/sa/s");
        let caller = Caller {
            identity: &[&text],
            node: &node,
            way: Way::Delta,
        };
        access.rights(&caller).ok().flatten()
    };
    assert_ne!(rights("a"), rights("b"), "the last rule is about their own names");
    assert_eq!(rights("c"), rights("c"));
    assert_ne!(rights("c"), rights("d"));
    let same = Access::new(vec![of("a", "x*"), of("b", "x*")], true);
    let texts = ["a", "b"].map(|ns| format!("spiffe://td/ns/{ns}/sa/s"));
    let [one, other] = texts.each_ref().map(|text| {
        let caller = Caller {
            identity: &[text],
            node: &node,
            way: Way::Delta,
        };
        same.rights(&caller).ok().flatten()
    });
    assert!(one.is_some() && one == other);
}

/// S-01: among 100,000 rules, those about a client are found without a look at the others.
#[test]
fn very_many_rules() {
    let rule = |number: usize| AccessRule {
        name: number.to_string(),
        identities: patterns(&[&format!("spiffe://td/ns/n{number}/sa/*")]),
        names: patterns(&[&format!("n{number}/*")]).into(),
        ..AccessRule::default()
    };
    let access = Access::new((0..100_000).map(rule).collect(), true);
    let node = Node::default();
    let caller = Caller {
        identity: &["spiffe://td/ns/n77777/sa/x", "ip:10.0.0.1"],
        node: &node,
        way: Way::Sotw,
    };
    assert_eq!(access.candidates(&caller), BTreeSet::from([77_777]));
    let everybody = Access::new(
        (0..100_000)
            .map(|number| AccessRule {
                names: patterns(&[&format!("n{number}/*")]).into(),
                allow: number % 2 == 0,
                ..AccessRule::default()
            })
            .collect(),
        true,
    );
    let rights = everybody.rights(&caller).ok().flatten();
    let clusters = TypeUrl::new("envoy.config.cluster.v3.Cluster");
    let may = |name: &str| rights.as_ref().is_some_and(|rights| rights.allow(&clusters, name));
    assert!(may("n77776/x") && !may("n77777/x") && !may("other"));
}
