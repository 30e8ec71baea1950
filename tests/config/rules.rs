// SPDX-License-Identifier: Apache-2.0
//! Rules about what clients may have: what they mean, and what is said of bad ones.

use distributary::classes::Node;
use distributary::config::{Config, Flags};
use distributary::xds::{Caller, Question, TypeUrl, Way};

use crate::{SERVER, complaint, good, parse};

/// Whether a client with this identity and node may have this name of a type, and why.
fn may(config: &Config, identity: &[&str], node: &str, what: Option<(&str, &str)>) -> (bool, String) {
    let (id, cluster) = node.split_once(',').unwrap_or((node, ""));
    let node = Node {
        id: id.into(),
        cluster: cluster.into(),
        ..Node::default()
    };
    let type_url = what.map(|(short, _)| TypeUrl::called(short).unwrap());
    let question = Question {
        caller: Caller {
            identity,
            node: &node,
            way: Way::Delta,
        },
        type_url: type_url.as_ref(),
        name: what.map(|(_, name)| name),
    };
    let answer = config.access.explain(&question);
    (answer.allowed, answer.to_string())
}

/// S-01: a rule may be about the metadata of a node, with fields of the identity.
#[test]
fn rules_about_metadata() {
    let config = good(&format!(
        "{SERVER}rules: [{{name: own, identities: 'dns:*.{{ns}}', nodes: {{metadata: {{NS: '{{ns}}-*', LABELS.\"a/b\": [x, y]}}}}}}]\n"
    ));
    let may = |members: &[(&str, &str)]| {
        let node = Node {
            metadata: members
                .iter()
                .map(|(path, value)| ((*path).to_owned(), (*value).to_owned()))
                .collect(),
            ..Node::default()
        };
        let caller = Caller {
            identity: &["dns:web.a"],
            node: &node,
            way: Way::Delta,
        };
        let question = Question {
            caller,
            type_url: None,
            name: None,
        };
        let answer = config.access.explain(&question);
        assert_eq!(answer.allowed, config.access.rights(&caller).is_ok());
        (answer.allowed, answer.to_string())
    };
    assert!(may(&[("NS", "a-1"), ("LABELS.a/b", "y")]).0);
    #[rustfmt::skip]
    let rows = [
        (&[("NS", "b-1"), ("LABELS.a/b", "y")][..], "the node's metadata.NS `b-1` does not match `a-*`"),
        (&[("NS", "a-1"), ("LABELS.a/b", "z")], "the node's metadata.LABELS.a/b `z` does not match `x`, `y`"),
        (&[("NS", "a-1")], "the node's metadata.LABELS.a/b `` does not match `x`, `y`"),
        (&[], "metadata.LABELS.a/b `` does not match"),
    ];
    for (members, why) in rows {
        let (allowed, said) = may(members);
        assert!(!allowed && said.contains(why), "{members:?}: {said}");
    }
}

const TENANTS: &str = "
rules:
- name: mine
  identities: 'spiffe://td/ns/{ns}/sa/*'
  nodes: {id: '*.{ns}', cluster: '{ns}-*'}
  names: ['{ns}/*']
- name: shared
  identities: ['spiffe://td/*', 'ip:10.*']
  types: [cds, eds]
  authorities: [shared.example.com]
- name: nobody
  types: [lds]
  action: deny
- name: operators
  identities: ip:10.0.0.7
  dialects: [delta, rest]
";

#[test]
fn what_rules_mean() {
    let config = good(&format!("{SERVER}{TENANTS}"));
    assert!(config.warnings.is_empty(), "{:?}", config.warnings);
    let spiffe = "spiffe://td/ns/a/sa/web";
    let endpoints = "xdstp://shared.example.com/envoy.config.endpoint.v3.ClusterLoadAssignment/x";
    #[rustfmt::skip]
    let rows = [
        (spiffe, "web.a,a-edge", None, true, "rules[0] `mine` allows it, of the names `{ns}/*`"),
        (spiffe, "web.a,a-edge", Some(("cds", "a/x")), true, "rules[0] `mine` allows it\n"),
        (spiffe, "web.a,a-edge", Some(("cds", "b/x")), false, "no rule matches"),
        (spiffe, "web.b,a-edge", Some(("cds", "a/x")), false, "the node's id `web.b` does not match `*.a`"),
        (spiffe, "web.a,b-edge", Some(("cds", "a/x")), false, "the node's cluster `b-edge` does not match `a-*`"),
        (spiffe, "web.a,a-edge", Some(("eds", endpoints)), true, "rules[1] `shared` allows it"),
        (spiffe, "web.a,a-edge", Some(("rds", endpoints)), false, "`types` does not name"),
        ("ip:10.0.0.7", "x", Some(("rds", "any")), true, "rules[3] `operators` allows it"),
        ("ip:10.0.0.7", "x", Some(("lds", "any")), false, "rules[2] `nobody` denies it"),
        ("ip:10.0.0.7", "x", Some(("sds", "any")), false, "it allows secrets only if `types` names them"),
        ("ip:11.0.0.7", "x", None, false, "rules[2] `nobody`: it denies only some resources"),
    ];
    for (identity, node, what, expected, why) in rows {
        let (allowed, said) = may(&config, &[identity], node, what);
        assert_eq!(allowed, expected, "{identity} {node} {what:?}: {said}");
        assert!(said.contains(why), "{identity} {node} {what:?}: {said}");
    }
}

/// S-05: `secrets: allow` is no rule; the flag wins over the file.
#[test]
fn secrets_need_a_word() {
    let secret = Some(("sds", "s"));
    for (text, flag, expected) in [
        ("", None, false),
        ("secrets: allow\n", None, true),
        ("secrets: by_rule\n", Some("allow"), true),
        ("secrets: allow\n", Some("by_rule"), false),
        ("rules: [{name: r, types: sds}]\n", None, true),
        ("rules: [{name: r}]\n", None, false),
        ("rules: [{name: r}]\nsecrets: allow\n", None, true),
    ] {
        let flags = Flags {
            secrets: flag.map(str::to_owned),
            ..Flags::default()
        };
        let config = Config::parse(&format!("{SERVER}{text}"), "relay.yaml", &flags).unwrap();
        assert_eq!(may(&config, &[], "n", secret).0, expected, "{text} {flag:?}");
        let others = !text.contains("types");
        assert_eq!(may(&config, &[], "n", Some(("cds", "c"))).0, others, "{text} {flag:?}");
    }
    let flags = Flags {
        secrets: Some("yes".to_owned()),
        ..Flags::default()
    };
    let error = Config::parse(SERVER, "relay.yaml", &flags).unwrap_err().to_string();
    assert!(
        error.contains("--secrets: `yes` is not a way to treat secrets"),
        "{error}"
    );
}

#[test]
#[rustfmt::skip]
fn what_is_said_of_bad_rules() {
    for (text, said) in [
        ("rules: []\n", "1:8: rules: the list is empty; add a rule, or leave `rules` out to allow all but secrets"),
        ("rules: [{}]\n", "1:9: rules[0]: missing field `name`"),
        ("rules: [{name: ''}]\n", "1:16: rules[0].name: the name is empty; write one that log lines can show"),
        ("rules: [{name: a, types: cds}, {name: a}]\n", "1:39: rules[1].name: `a` is also the name of rules[0]; give each rule its own"),
        ("rules: [{name: a, identites: x}]\n", "1:19: rules[0].identites: unknown field `identites`; did you mean `identities`?"),
        ("rules: [{name: a, identities: []}]\n", "1:31: rules[0].identities: the list is empty; leave it out for no condition"),
        ("rules: [{name: a, identities: {}}]\n", "1:31: rules[0].identities: expected a text, or a list of texts, found an object"),
        ("rules: [{name: a, identities: 'spife://td/x'}]\n", "1:31: rules[0].identities: no identity begins with `spife:`; did you \
            mean `spiffe:`?"),
        ("rules: [{name: a, identities: 'spiffe://{ns}/{ns}'}]\n", "1:31: rules[0].identities: `{ns}` is there twice; give each field \
            its own name"),
        ("rules: [{name: a, identities: 'spiffe://{ns'}]\n", "1:31: rules[0].identities: `spiffe://{ns` has an unmatched brace; write \
            {{ or }} for a literal brace"),
        ("rules: [{name: a, identities: 'dns:{ns}*'}]\n", "1:31: rules[0].identities: `dns:{ns}*` does not say where `{ns}` begins and \
            ends; put a text between it and its neighbour"),
        ("rules: [{name: a, identities: ['dns:{ns}', 'dns:x'], nodes: {id: '{ns}'}}]\n", "1:66: rules[0].nodes.id: `{ns}` is not a \
            field of every pattern in `identities`; add it there"),
        ("rules: [{name: a, identities: 'dns:{name}', names: '{nam}'}]\n", "1:52: rules[0].names: `{nam}` is no field of the identity; \
            did you mean `{name}`?"),
        ("rules: [{name: a, nodes: {metadata: {NS: '{ns}'}}}]\n", "1:42: rules[0].nodes.metadata.NS: `{ns}` is not a field of every \
            pattern in `identities`; add it there"),
        ("rules: [{name: a, nodes: {metadata: {NS: []}}}]\n", "1:42: rules[0].nodes.metadata.NS: the list is empty; leave it out for no \
            condition"),
        ("rules: [{name: a, nodes: {metadata: {'a..b': x}}}]\n", "1:46: rules[0].nodes.metadata: `a..b` has an empty key; write \"\" if \
            the key is empty"),
        ("rules: [{name: a, types: cdss}]\n", "1:26: rules[0].types: `cdss` is not a type; did you mean `cds`?"),
        ("rules: [{name: a, types: 'a b.c'}]\n", "1:26: rules[0].types: `a b.c` is not a type; write type.googleapis.com/ and the \
            message's full name"),
        ("rules: [{name: a, types: envoy.config.cluster.v3.Clusters}]\n", "1:26: rules[0].types: `envoy.config.cluster.v3.Clusters` is not \
            a type; did you mean `envoy.config.cluster.v3.Cluster`?"),
        ("rules: [{name: a, dialects: detla}]\n", "1:29: rules[0].dialects: `detla` is not a dialect; write sotw, delta, rest or csds"),
        ("rules: [{name: a, names: 'a/*', dialects: csds}]\n", "1:43: rules[0].dialects: answers over csds are about all types and names; \
            give csds a rule without `types`, `names` and `authorities`"),
        ("rules: [{name: a, authorities: '*.example.com'}]\n", "1:32: rules[0].authorities: `*.example.com` is not an authority; write \
            it in full, or with fields of the identity (a `*` would also stand for what follows it)"),
        ("rules: [{name: a, action: permit}]\n", "1:27: rules[0].action: `permit` is not an action; write allow or deny"),
        ("secrets: true\n", "1:10: secrets: `true` is not a way to treat secrets; write allow or by_rule"),
    ] {
        assert_eq!(complaint(text), format!("relay.yaml:{said}"), "{text}");
    }
}

#[test]
fn a_rule_that_never_decides_is_a_warning() {
    let text = "secrets: allow\nrules: [{name: a}, {name: b, types: cds}]\n";
    let config = parse(&format!("{SERVER}{text}")).unwrap();
    let said = "rules[1]: it never decides, because rules[0] is about all clients and all resources";
    assert!(config.warnings[0].ends_with(said), "{:?}", config.warnings);
    let text = "secrets: allow\nrules: [{name: a}, {name: b, dialects: csds}]\n";
    assert!(
        parse(&format!("{SERVER}{text}")).unwrap().warnings.is_empty(),
        "the first is not about csds"
    );
}
