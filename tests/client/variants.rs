//! Variants of a name that are not for all clients (TP2).

use proto::envoy::service::discovery::v3::{
    DeltaDiscoveryResponse, DynamicParameterConstraints, Resource, ResourceName,
    dynamic_parameter_constraints::{SingleConstraint, Type, single_constraint::ConstraintType},
};
use xds::{Choice, Dialect, Known, Name, State, TypeUrl};

use crate::{CDS, EDS, Upstream, delta, refusal, relay, resource, seconds, sotw, wrapped};

fn only(env: &str) -> Option<DynamicParameterConstraints> {
    let single = SingleConstraint {
        key: "env".to_owned(),
        constraint_type: Some(ConstraintType::Value(env.to_owned())),
    };
    Some(DynamicParameterConstraints {
        r#type: Some(Type::Constraint(single)),
    })
}

fn full_name(name: &str, env: &str) -> ResourceName {
    ResourceName {
        name: name.to_owned(),
        dynamic_parameter_constraints: only(env),
    }
}

/// The variant of `a` for an environment; without one, for all clients.
fn variant(env: &str, content: &str) -> Resource {
    called(EDS, "a", env, content)
}

pub(crate) fn called(type_url: &str, name: &str, env: &str, content: &str) -> Resource {
    let plain = resource(type_url, name, content);
    if env.is_empty() {
        return plain;
    }
    Resource {
        name: String::new(),
        resource_name: Some(full_name(name, env)),
        ..plain
    }
}

/// `a=1`, and `a[prod]=1` for a variant with a constraint.
fn all(type_url: &str, texts: &[&str]) -> Vec<Resource> {
    let one = |text: &&str| {
        let (name, content) = text.rsplit_once('=').unwrap();
        let (name, env) = name.split_once('[').unwrap_or((name, ""));
        called(type_url, name, env.trim_end_matches(']'), content)
    };
    texts.iter().map(one).collect()
}

fn says(type_url: &str, nonce: &str, texts: &[&str]) -> DeltaDiscoveryResponse {
    DeltaDiscoveryResponse {
        resources: all(type_url, texts),
        ..delta(type_url, nonce, &[], &[])
    }
}

fn state(state: &State) -> String {
    let mut words: Vec<String> = Vec::new();
    let content = |body: &[u8]| String::from_utf8_lossy(body).split('=').next_back().unwrap().to_owned();
    for (name, known) in state.entries() {
        words.push(match known {
            Known::Present(found) => format!("{name}={}", content(&found.body())),
            Known::Absent(reason) => format!("{name}:{reason:?}"),
        });
    }
    for (found, _) in state.variants() {
        let demands = found.constraints().unwrap();
        words.push(format!("{}{demands}={}", found.name(), content(&found.body())));
    }
    words.sort();
    words.join(" ")
}

impl Upstream {
    /// All that is known of a type: `a=1 a{env=prod}=2 b:Said`.
    pub(crate) fn everything(&self, type_url: &str) -> String {
        let slot = self.cut.slot(&TypeUrl::new(type_url)).unwrap();
        state(slot.wildcard.as_ref().unwrap_or(&slot.named))
    }
}

fn response(nonce: &str, resources: Vec<Resource>) -> DeltaDiscoveryResponse {
    DeltaDiscoveryResponse {
        resources,
        ..delta(EDS, nonce, &[], &[])
    }
}

/// What a client with these parameters gets.
fn chosen(upstream: &Upstream, env: Option<&str>) -> String {
    let own = env.map(|env| Choice::One([("env".to_owned(), env.to_owned())].into()));
    let slot = upstream.cut.slot(&TypeUrl::new(EDS)).unwrap();
    match slot.choose(&Name::from("a"), own.as_ref()) {
        None => "unknown".to_owned(),
        Some(Known::Absent(reason)) => format!("{reason:?}"),
        Some(Known::Present(found)) => {
            let body = found.body();
            String::from_utf8_lossy(&body)
                .split('=')
                .next_back()
                .unwrap()
                .to_owned()
        }
    }
}

/// C-23, F-16: variants of one name are no duplicates; each client gets the one that it matches; a client without parameters gets
/// the one without constraints.
#[test]
fn each_gets_its_own() {
    for dialect in [Dialect::Delta, Dialect::Sotw] {
        let mut upstream = Upstream::streaming(dialect, EDS, &["a"]);
        let all = vec![variant("prod", "1"), variant("test", "2"), variant("", "3")];
        match dialect {
            Dialect::Delta => upstream.hears(response("1", all)),
            Dialect::Sotw => {
                let mut response = sotw(EDS, "1", "n1", &[]);
                response.resources = all.iter().map(wrapped).collect();
                upstream.hears_sotw(response);
            }
        }
        assert!(refusal(&mut upstream).is_empty());
        let envs = [Some("prod"), Some("test"), Some("other"), None];
        assert_eq!(envs.map(|env| chosen(&upstream, env)), ["1", "2", "3", "3"]);
    }
}

/// F-16: what another relay sends for a name is all variants of it; for any other server, variants that it does not mention stay.
#[test]
fn a_relay_says_all_of_a_name() {
    let from = |is_relay: bool, response: DeltaDiscoveryResponse| DeltaDiscoveryResponse {
        control_plane: relay().filter(|_| is_relay),
        ..response
    };
    for (is_relay, names, expected) in [
        (true, ["a"], "a{env=test}=4"),
        (true, ["*"], "a{env=test}=4"),
        (false, ["a"], "a=3 a{env=prod}=1 a{env=test}=4"),
        (false, ["*"], "a=3 a{env=prod}=1 a{env=test}=4"),
    ] {
        let mut upstream = Upstream::streaming(Dialect::Delta, EDS, &names);
        let all = vec![variant("prod", "1"), variant("test", "2"), variant("", "3")];
        upstream.hears(from(is_relay, response("1", all)));
        upstream.hears(from(is_relay, response("2", vec![variant("test", "4")])));
        assert!(refusal(&mut upstream).is_empty());
        let known = upstream.everything(EDS).replace("a:Said ", "");
        assert_eq!(known, expected, "{is_relay} {names:?}");
        if is_relay {
            upstream.hears(from(true, delta(EDS, "3", &[], &["a"])));
            assert_eq!(upstream.everything(EDS).replace("a:Said", ""), "");
        }
    }
}

/// C-23: a variant is removed by its full name, and the name itself with its last variant.
#[test]
fn variants_go() {
    let mut upstream = Upstream::streaming(Dialect::Delta, EDS, &["a"]);
    upstream.hears(response("1", vec![variant("prod", "1"), variant("test", "2")]));
    let envs = [Some("prod"), Some("test"), Some("other"), None];
    assert_eq!(envs.map(|env| chosen(&upstream, env)), ["1", "2", "Said", "Said"]);
    let mut gone = response("2", vec![variant("test", "3")]);
    gone.removed_resource_names = vec![full_name("a", "prod"), full_name("b", "test")];
    upstream.hears(gone);
    assert_eq!(envs.map(|env| chosen(&upstream, env)), ["Said", "3", "Said", "Said"]);
    let mut gone = response("3", Vec::new());
    gone.removed_resource_names = vec![full_name("a", "test")];
    upstream.hears(gone);
    assert_eq!(upstream.named(EDS), "a:Said");
    upstream.hears(response("4", vec![variant("prod", "1")]));
    assert_eq!(envs.map(|env| chosen(&upstream, env)), ["1", "Said", "Said", "Said"]);
    upstream.unwant(EDS, "a");
    upstream.want(EDS, "a");
    assert_eq!(envs.map(|env| chosen(&upstream, env)), ["unknown"; 4]);
}

/// C-20, C-23: a name is given up while its variant without constraints is asked for by another of its names: its other variants
/// are forgotten.
#[test]
fn given_up_beside_an_alias() {
    let mut upstream = Upstream::streaming(Dialect::Delta, EDS, &["a", "b"]);
    let mut plain = variant("", "1");
    plain.aliases = vec!["b".to_owned()];
    upstream.hears(response("1", vec![plain, variant("prod", "2")]));
    assert_eq!(upstream.everything(EDS), "a=1 a{env=prod}=2");
    upstream.unwant(EDS, "a");
    assert_eq!(upstream.everything(EDS), "a=1");
    upstream.want(EDS, "a");
    assert_eq!(chosen(&upstream, Some("prod")), "1");
}

/// E-17: a name that is wanted again is unsubscribed and subscribed. If the server has not answered yet, what is on its way is
/// taken for part of the answer, and the removal of a variant meanwhile would go unnoticed.
#[test]
fn wanted_anew() {
    let mut upstream = Upstream::streaming(Dialect::Delta, EDS, &["a"]);
    upstream.want(EDS, "a");
    assert_eq!(upstream.sent(), [""; 0]);
    upstream.hears(response("1", vec![variant("prod", "1")]));
    assert_eq!(refusal(&mut upstream), "");
    upstream.want(EDS, "a");
    assert_eq!(chosen(&upstream, Some("prod")), "unknown");
    assert_eq!(upstream.sent(), ["eds -a", "eds +a"]);
}

/// E-12, C-23: a response with the same variant twice is rejected.
#[test]
fn one_variant_twice() {
    let mut upstream = Upstream::streaming(Dialect::Delta, EDS, &["a"]);
    upstream.hears(response(
        "1",
        vec![variant("prod", "1"), variant("prod", "2"), variant("", "3")],
    ));
    assert_eq!([Some("prod"), None].map(|env| chosen(&upstream, env)), ["3", "3"]);
    let text = refusal(&mut upstream);
    assert!(
        text.contains("resource \"a\" is in the response more than once"),
        "{text}"
    );
}

/// E-11, TP2: a variant whose time to live ends at once removes no other variant.
#[test]
fn a_dead_variant() {
    let mut upstream = Upstream::streaming(Dialect::Delta, EDS, &["a"]);
    upstream.hears(response("n1", vec![variant("", "all"), variant("prod", "prod")]));
    let dead = Resource {
        ttl: seconds(0),
        ..variant("prod", "prod")
    };
    upstream.hears(response("n2", vec![dead]));
    assert_eq!(chosen(&upstream, None), "all");
    assert_eq!(chosen(&upstream, Some("prod")), "all");
}

const MEMBERS: &str = "xdstp://x/envoy.config.endpoint.v3.ClusterLoadAssignment/d/*?k=v";

fn member(id: &str) -> String {
    MEMBERS.replace('*', id)
}

/// The ways to ask for `a` and `b`, and their names then.
fn asked(type_url: &str) -> [(&'static str, Vec<String>, [String; 2]); 3] {
    let plain = ["a", "b"].map(str::to_owned);
    assert_eq!(type_url, EDS);
    [
        ("wildcard", vec!["*".to_owned()], plain.clone()),
        ("names", plain.to_vec(), plain),
        ("collection", vec![MEMBERS.to_owned()], ["a", "b"].map(member)),
    ]
}

/// C-22, C-23, E-06: a wildcard and a collection bring all variants of each name, like a name does; each variant goes by itself,
/// and the one without constraints goes without the others.
#[test]
fn whatever_asks_for_them() {
    for (how, targets, [a, b]) in asked(EDS) {
        let targets: Vec<&str> = targets.iter().map(String::as_str).collect();
        let mut upstream = Upstream::streaming(Dialect::Delta, EDS, &targets);
        let called = |text: &str| text.replace('A', &a).replace('B', &b);
        let texts = ["A=1", "A[prod]=2", "A[test]=3", "B[prod]=4", "other[prod]=5"].map(called);
        let mut texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        if how == "wildcard" {
            texts.pop();
        }
        upstream.hears(says(EDS, "1", &texts));
        assert_eq!(refusal(&mut upstream), "", "{how}");
        let first = called("A=1 A{env=prod}=2 A{env=test}=3 B{env=prod}=4");
        assert_eq!(upstream.everything(EDS), first, "{how}");

        let mut gone = says(EDS, "2", &[]);
        gone.removed_resources = vec![a.clone()];
        gone.removed_resource_names = vec![full_name(&a, "test")];
        upstream.hears(gone);
        let said = if how == "names" { "a:Said " } else { "" };
        let left = called("A{env=prod}=2 B{env=prod}=4");
        assert_eq!(upstream.everything(EDS), format!("{said}{left}"), "{how}");

        let mut gone = says(EDS, "3", &[]);
        gone.removed_resource_names = [&a, &b].map(|name| full_name(name, "prod")).to_vec();
        upstream.hears(gone);
        let said = if how == "names" { "a:Said b:Said" } else { "" };
        assert_eq!(upstream.everything(EDS), said, "{how}");
    }
}

/// E-04, C-23: no version can declare one of several variants, so names that have variants are not declared; the server sends all
/// of them anew, and what it does not send goes.
#[test]
fn a_new_stream() {
    for (how, targets, [a, b]) in asked(EDS) {
        let targets: Vec<&str> = targets.iter().map(String::as_str).collect();
        let mut upstream = Upstream::streaming(Dialect::Delta, EDS, &targets);
        let called = |text: &str| text.replace('A', &a).replace('B', &b);
        let texts = ["A=1", "A[prod]=2", "A[test]=3", "B=4"].map(called);
        let texts = texts.each_ref().map(String::as_str);
        upstream.hears(says(EDS, "1", &texts));
        upstream.sent();
        upstream.pass(std::time::Duration::from_secs(1));
        upstream.disconnect();
        upstream.connect();
        let request = upstream.sent().join(" ");
        assert!(request.contains(&format!("{b}@4")), "{how}: {request}");
        assert!(
            !request.contains(&format!("{a}@")) && !request.contains('\0'),
            "{how}: {request}"
        );
        let before = called("A=1 A{env=prod}=2 A{env=test}=3 B=4");
        assert_eq!(upstream.everything(EDS), before, "{how}: G-19");

        let again = ["A=1", "A[test]=5"].map(called);
        upstream.hears(says(EDS, "2", &again.each_ref().map(String::as_str)));
        upstream.sent();
        upstream.pass(std::time::Duration::from_secs(20));
        assert_eq!(upstream.everything(EDS), called("A=1 A{env=test}=5 B=4"), "{how}");
    }
}

/// E-04, C-26: the variant without constraints may come again because the name has another variant: that does not prove that the
/// server ignores declarations.
#[test]
fn a_new_variant_after_a_reconnect() {
    for (how, targets, [a, b]) in asked(EDS) {
        let targets: Vec<&str> = targets.iter().map(String::as_str).collect();
        let mut upstream = Upstream::streaming(Dialect::Delta, EDS, &targets);
        let called = |text: &str| text.replace('A', &a).replace('B', &b);
        let texts = ["A=1", "B=2"].map(called);
        upstream.hears(says(EDS, "1", &texts.each_ref().map(String::as_str)));
        upstream.sent();
        upstream.pass(std::time::Duration::from_secs(1));
        upstream.disconnect();
        upstream.connect();
        let request = upstream.sent().join(" ");
        assert!(request.contains(&format!("{a}@1 {b}@2")), "{how}: {request}");

        let more = ["A=1", "A[prod]=3"].map(called);
        let answer = DeltaDiscoveryResponse {
            control_plane: relay(),
            ..says(EDS, "2", &more.each_ref().map(String::as_str))
        };
        upstream.hears(answer);
        upstream.sent();
        upstream.pass(std::time::Duration::from_secs(20));
        assert_eq!(upstream.everything(EDS), called("A=1 A{env=prod}=3 B=2"), "{how}");
    }
}

/// E-08, K-16: if a new stream does not answer for a name in time, its variants go, like anything that is not answered for.
#[test]
fn a_server_that_does_not_say_them_again() {
    let mut upstream = Upstream::streaming(Dialect::Delta, EDS, &["a"]);
    upstream.hears(says(EDS, "1", &["a[prod]=1"]));
    upstream.sent();
    upstream.disconnect();
    upstream.connect();
    assert_eq!(upstream.sent(), ["eds +a"]);
    assert_eq!(upstream.everything(EDS), "a{env=prod}=1");
    upstream.pass(std::time::Duration::from_secs(15));
    assert_eq!(upstream.everything(EDS), "a:TimedOut");
}

/// E-08, E-11: the variant without constraints expires meanwhile; that answers for nothing else.
#[test]
fn a_server_that_does_not_say_them_again_and_one_ends_by_itself() {
    let mut upstream = Upstream::streaming(Dialect::Delta, EDS, &["a"]);
    let mortal = Resource {
        ttl: seconds(5),
        ..variant("", "all")
    };
    upstream.hears(response("n1", vec![mortal, variant("prod", "prod")]));
    upstream.sent();
    upstream.disconnect();
    upstream.connect();
    assert_eq!(upstream.sent(), ["eds +a"]);
    upstream.pass(std::time::Duration::from_secs(6));
    assert_eq!(upstream.everything(EDS), "a:Expired a{env=prod}=prod");
    upstream.pass(std::time::Duration::from_secs(10));
    assert_eq!(upstream.everything(EDS), "a:TimedOut");
}

/// E-08, C-23: what the server sends after that is certain, in however many responses it comes.
#[test]
fn a_server_that_says_them_again_too_late() {
    let mut upstream = Upstream::streaming(Dialect::Delta, EDS, &["a"]);
    upstream.hears(says(EDS, "1", &["a=1", "a[prod]=2"]));
    upstream.sent();
    upstream.disconnect();
    upstream.connect();
    assert_eq!(upstream.sent(), ["eds +a"]);
    upstream.pass(std::time::Duration::from_secs(15));
    assert_eq!(upstream.everything(EDS), "a:TimedOut");
    upstream.hears(says(EDS, "2", &["a=1"]));
    upstream.hears(says(EDS, "3", &["a[prod]=2"]));
    assert_eq!(upstream.everything(EDS), "a=1 a{env=prod}=2");
}

/// C-23: SotW cannot remove a variant, so a response with any variant of a name has all of them; a full state has all variants of
/// all names.
#[test]
fn in_sotw_a_name_is_said_as_a_whole() {
    let says = |type_url: &str, nonce: &str, texts: &[&str]| {
        let mut response = sotw(type_url, nonce, nonce, &[]);
        response.resources = all(type_url, texts).iter().map(wrapped).collect();
        response
    };
    let mut upstream = Upstream::streaming(Dialect::Sotw, EDS, &["a", "b"]);
    upstream.hears_sotw(says(EDS, "1", &["a=1", "a[prod]=2", "b[prod]=3", "b[test]=4"]));
    upstream.hears_sotw(says(EDS, "2", &["b[test]=5"]));
    assert_eq!(upstream.everything(EDS), "a=1 a{env=prod}=2 b{env=test}=5");
    upstream.hears_sotw(says(EDS, "3", &["a[prod]=2"]));
    assert_eq!(upstream.everything(EDS), "a:Said a{env=prod}=2 b{env=test}=5");

    let mut upstream = Upstream::streaming(Dialect::Sotw, CDS, &["*"]);
    upstream.hears_sotw(says(CDS, "1", &["a=1", "a[prod]=2", "b[prod]=3"]));
    assert_eq!(upstream.everything(CDS), "a=1 a{env=prod}=2 b{env=prod}=3");
    upstream.hears_sotw(says(CDS, "2", &["a[prod]=2"]));
    assert_eq!(upstream.everything(CDS), "a{env=prod}=2");
}

/// K-16: variants that an earlier run knew are served, not declared to the server, and gone when the server does not send them.
#[test]
fn restored() {
    for (how, targets, [a, b]) in asked(EDS) {
        for connected in [false, true] {
            let texts: Vec<&str> = targets.iter().map(String::as_str).collect();
            let mut earlier = Upstream::streaming(Dialect::Delta, EDS, &texts);
            let called = |text: &str| text.replace('A', &a).replace('B', &b);
            let known = ["A=1", "A[prod]=2", "A[test]=3", "B[prod]=4"].map(called);
            earlier.hears(says(EDS, "1", &known.each_ref().map(String::as_str)));
            earlier.sent();
            earlier.pass(std::time::Duration::from_secs(1));

            let mut upstream = Upstream::new(Dialect::Delta);
            if connected {
                upstream.connect();
            }
            for text in &targets {
                upstream.restore(EDS, text, &earlier.cut);
            }
            // The server has not reported that the variant without constraints does not exist.
            let silent = if how == "names" { "b:TimedOut " } else { "" };
            let before = called(&format!("A=1 A{{env=prod}}=2 A{{env=test}}=3 {silent}B{{env=prod}}=4"));
            assert_eq!(upstream.everything(EDS), before, "{how} {connected}");
            if !connected {
                upstream.connect();
            }
            let request = upstream.sent().join(" ");
            assert!(!request.contains('@'), "{how} {connected}: {request}");
            let now = ["A[prod]=2", "B=5"].map(called);
            upstream.hears(says(EDS, "1", &now.each_ref().map(String::as_str)));
            upstream.sent();
            upstream.pass(std::time::Duration::from_secs(20));
            let said = if how == "names" { "a:Said " } else { "" };
            let left = called("A{env=prod}=2 B=5");
            assert_eq!(upstream.everything(EDS), format!("{said}{left}"), "{how} {connected}");
        }
    }
}

/// E-08, K-23: some members of a collection were declared and the server is silent: the members that were not declared go in
/// time.
#[test]
fn members_that_nobody_declares() {
    let mut upstream = Upstream::streaming(Dialect::Delta, EDS, &[MEMBERS]);
    let [a, b] = ["a", "b"].map(member);
    upstream.hears(says(EDS, "1", &[&format!("{a}=1"), &format!("{b}[prod]=2")]));
    upstream.sent();
    upstream.pass(std::time::Duration::from_secs(1));
    upstream.disconnect();
    upstream.connect();
    upstream.sent();
    upstream.pass(std::time::Duration::from_secs(15));
    assert_eq!(upstream.everything(EDS), format!("{a}=1"));
}

/// C-23, E-08: the same for a member that is then asked for by itself: its variants are waited for, and those that the server
/// leaves out go.
#[test]
fn a_variant_that_nobody_declares_and_somebody_asks_for() {
    let a = member("a");
    for (answer, left) in [
        (None, format!("{MEMBERS}:TimedOut {a}:TimedOut")),
        (Some("[dev]=3"), format!("{a}{{env=dev}}=3")),
    ] {
        let mut upstream = Upstream::streaming(Dialect::Delta, EDS, &[MEMBERS]);
        upstream.hears(says(EDS, "1", &[&format!("{a}[prod]=2")]));
        upstream.sent();
        upstream.disconnect();
        upstream.connect();
        upstream.sent();
        upstream.want(EDS, &a);
        upstream.sent();
        if let Some(answer) = answer {
            upstream.hears(says(EDS, "2", &[&format!("{a}{answer}")]));
            upstream.sent();
        }
        upstream.pass(std::time::Duration::from_secs(15));
        assert_eq!(upstream.everything(EDS), left);
    }
}
