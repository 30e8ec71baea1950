// SPDX-License-Identifier: Apache-2.0
//! What is open by mistake is said: listeners without any condition, tokens that decide nothing, keys in the clear, and classes that
//! clients choose themselves.

use distributary::config::{Config, Flags};

use crate::{SERVER, complaint, good};

const TLS: &str = "tls: {certificate: c.pem, private_key: k.pem";
const JWT: &str = "jwt: [{issuer: i, audiences: [a], jwks_file: k}]\n";

/// Returns the warnings of a file with this listener and more.
fn warnings(listener: &str, more: &str) -> Vec<String> {
    good(&format!("listeners: [{{{listener}}}]\n{more}{SERVER}")).warnings
}

#[test]
fn a_listener_for_everybody_is_a_warning() {
    let open = "address: '0.0.0.0:1'";
    let said = "relay.yaml:1:23: listeners[0]: whoever reaches 0.0.0.0:1 is served, because there are no `rules`, and it demands no \
                identity; write `rules` (`rules: [{ name: everybody }]` if all may have everything), `require: identity`, or \
                `client_ca` into its `tls`";
    assert_eq!(warnings(open, ""), [said]);
    for (listener, more, count) in [
        (format!("{open}, {TLS}}}"), "", 1),
        ("address: '[::]:1'".to_owned(), "", 1),
        (format!("{open}, {TLS}, client_ca: ca.pem}}"), "", 0),
        (
            format!("{open}, {TLS}, spiffe: {{socket: 'unix:///s'}}}}")
                .replace("certificate: c.pem, private_key: k.pem, ", ""),
            "",
            0,
        ),
        (format!("{open}, require: identity"), "", 0),
        (open.to_owned(), "rules: [{name: everybody}]\n", 0),
        ("address: '127.0.0.1:1'".to_owned(), "", 0),
        ("address: '[::ffff:127.0.0.1]:1'".to_owned(), "", 0),
        ("address: 'unix:/s'".to_owned(), "", 0),
    ] {
        assert_eq!(warnings(&listener, more).len(), count, "{listener} {more}");
    }
    let flags = Flags {
        listen: vec!["10.0.0.1:1".to_owned()],
        ..Flags::default()
    };
    let flagged = Config::parse(SERVER, "relay.yaml", &flags).unwrap().warnings;
    assert!(
        flagged.len() == 1 && flagged[0].starts_with("relay.yaml: --listen: whoever reaches 10.0.0.1:1"),
        "{flagged:?}"
    );
    let local = "listeners: [{address: '127.0.0.1:1', require: tls}]\n";
    let said = "relay.yaml:1:47: listeners[0].require: `tls` cannot be required; write identity, or leave it out";
    assert_eq!(complaint(local), said);
}

#[test]
fn tokens_that_decide_nothing_are_an_error() {
    let said = "relay.yaml:1:7: jwt[0]: its tokens decide nothing: no rule, class or rule of `admin` names them, and no listener has \
                `require: identity`; write a rule with `identities: \"jwt:i#...\"`, or remove it";
    for unused in [
        "",
        "rules: [{name: a}]\n",
        "rules: [{name: a, identities: ['*', 'dns:x', 'jwt:j#x', 'claim:j#a=b']}]\n",
        "classes: [{key: [identity.dns]}]\n",
        "admin: {rules: [{identities: 'ip:127.0.0.1', allow: read}]}\n",
    ] {
        assert_eq!(complaint(&format!("{JWT}{unused}")), said, "{unused}");
    }
    for used in [
        "rules: [{name: a, identities: 'jwt:i#x'}]\n",
        "rules: [{name: a, identities: 'claim:i#a=b'}]\n",
        "rules: [{name: a, identities: 'claim:*#a=b'}]\n",
        "rules: [{name: a, identities: 'j*'}]\n",
        "rules: [{name: a, identities: '*#x'}]\n",
        "classes: [{key: [identity.jwt]}]\n",
        "classes: [{match: {identity.claim: 'i#team={team}'}, key: [team]}]\n",
        "admin: {rules: [{identities: 'jwt:i#*', allow: read}]}\n",
        "listeners: [{address: '127.0.0.1:1', require: identity}]\n",
    ] {
        assert_eq!(good(&format!("{JWT}{used}{SERVER}")).issuers.len(), 1, "{used}");
    }
    // An error in a rule is not followed by one about what seems to be missing.
    let one = complaint(&format!("{JWT}rules: [{{name: a, identities: 'jtw:i#x'}}]\n"));
    assert_eq!(one.lines().count(), 1, "{one}");
}

/// S-11: an identity that no client can have is no condition that anybody meant.
#[test]
fn halves_of_identities() {
    for (identity, form) in [
        ("claim:i#suspended", "claim:ISSUER#NAME=VALUE"),
        ("claim:suspended=yes", "claim:ISSUER#NAME=VALUE"),
        ("jwt:i", "jwt:ISSUER#SUBJECT"),
    ] {
        let said = complaint(&format!("rules: [{{name: a, identities: '{identity}'}}]\n"));
        assert_eq!(
            said,
            format!("relay.yaml:1:31: rules[0].identities: `{identity}` is no identity; write {form}")
        );
    }
}

/// S-11: a claim of any issuer is named for each that is configured, so that it is read whole; a part of a name is no name.
#[test]
fn claims_of_any_issuer() {
    let jwt = "jwt: [{issuer: i, audiences: [a], jwks_file: k}, {issuer: j/k, audiences: [a], jwks_file: k}]\nlisteners: [{address:                '127.0.0.1:1', require: identity}]\n";
    let pod = "k8s.io/pod/name";
    #[rustfmt::skip]
    let rows = [
        ("rules: [{name: a, identities: 'claim:*#k8s.io/pod/name=x', action: deny}]\n", &[pod][..], &[pod][..]),
        ("rules: [{name: a, identities: '*#k8s.io/pod/name=*'}]\n", &[pod], &[pod]),
        ("rules: [{name: a, identities: 'claim:j/{x}#k8s.io/pod/name={y}'}]\n", &[], &[pod]),
        ("admin: {rules: [{identities: 'claim:*#k8s.io/pod/name=x', allow: read}]}\n", &[pod], &[pod]),
        ("classes: [{match: {identity.claim: '*#k8s.io/pod/name={pod}'}, key: [pod]}]\n", &[pod], &[pod]),
        ("rules: [{name: a, identities: 'claim:i#k8s.io/pod/name=x'}, {name: b, identities: 'jwt:*'}]\n", &[pod], &[]),
        ("rules: [{name: a, identities: 'claim:*#k8s.io/*=x'}]\n", &[], &[]),
    ];
    for (used, of_one, of_other) in rows {
        let named = good(&format!("{jwt}{used}{SERVER}")).named();
        assert_eq!(named.claims("i").collect::<Vec<_>>(), of_one, "{used}");
        assert_eq!(named.claims("j/k").collect::<Vec<_>>(), of_other, "{used}");
    }
}

#[test]
fn secrets_in_the_clear_are_an_error() {
    let secrets = "secrets: allow\n";
    let open = "address: '0.0.0.0:1'";
    let said = "listeners[0]: `secrets: allow` would send private keys to clients in the clear, because this listener is without TLS \
                and not on loopback; give it `tls`, or, if something else encrypts its connections, such as a mesh, write \
                `insecure_secrets: true`";
    assert_eq!(
        complaint(&format!("listeners: [{{{open}}}]\n{secrets}")),
        format!("relay.yaml:1:23: {said}")
    );
    assert_eq!(
        complaint(&format!("listeners: [{{{open}, insecure_secrets: false}}]\n{secrets}")),
        format!("relay.yaml:1:23: {said}")
    );
    for listener in [
        format!("{open}, insecure_secrets: true"),
        format!("{open}, {TLS}}}"),
        "address: '127.0.0.1:1'".to_owned(),
        "address: 'unix:/s'".to_owned(),
    ] {
        assert!(
            good(&format!("listeners: [{{{listener}}}]\n{secrets}{SERVER}"))
                .access
                .secrets(),
            "{listener}"
        );
    }
    let flags = |listen: &str| Flags {
        listen: vec![listen.to_owned()],
        secrets: Some("allow".to_owned()),
        ..Flags::default()
    };
    let flagged = |listen: &str| Config::parse(SERVER, "relay.yaml", &flags(listen)).map_err(|error| error.to_string());
    assert!(flagged("127.0.0.1:1").is_ok());
    let error = flagged("10.0.0.1:1").unwrap_err();
    assert!(
        error.starts_with("relay.yaml: --listen: 10.0.0.1:1: `secrets: allow` would send"),
        "{error}"
    );
}

/// Where rules tell clients apart, the fields by which they choose a class must be in the rules.
#[test]
fn classes_that_clients_choose_are_a_warning() {
    let said = |at: usize, field: &str, condition: &str| {
        format!(
            "classes[{at}]: clients choose `{field}` themselves, and rules[1] `tenants` does not say which one they may state: a client \
             that it allows is served what control planes say to clients with any other `{field}`; write `nodes: {condition}` into the \
             rule, or take the class from `identity`"
        )
    };
    let rules = |nodes: &str| {
        format!(
            "rules: [{{name: no, identities: 'dns:x', action: deny}}, {{name: tenants, identities: 'spiffe://td/ns/{{ns}}/*'{nodes}}}, \
             {{name: all}}]\n"
        )
    };
    let of = |class: &str, nodes: &str| -> Vec<String> {
        let all = good(&format!(
            "node: {{id: r}}\nclasses: [{class}]\n{}{SERVER}",
            rules(nodes)
        ))
        .warnings;
        let all = all.into_iter().filter(|said| said.contains("clients choose"));
        all.map(|said| said.split_once(": ").unwrap().1.to_owned()).collect()
    };
    let ns = "{key: [metadata.NS], node: {id: 'r/{metadata.NS}'}}";
    assert_eq!(of(ns, ""), [said(0, "metadata.NS", "{ metadata: { NS: ... } }")]);
    assert_eq!(of(ns, ", nodes: {metadata: {NS: '{ns}'}}"), [""; 0]);
    assert_eq!(of(ns, ", nodes: {metadata: {OTHER: '{ns}'}}").len(), 1);
    assert_eq!(
        of("{key: [cluster, id]}", ", nodes: {id: '*.{ns}'}"),
        [said(0, "cluster", "{ cluster: ... }")]
    );
    assert_eq!(of("{match: {metadata.NS: b}}", "").len(), 1);
    assert_eq!(of("{match: {cluster: '{tenant}-*'}, key: [tenant]}", "").len(), 1);
    for checked in [
        "{match: {identity.spiffe: 'spiffe://td/ns/{ns}/*'}, key: [ns]}",
        "{key: [identity.spiffe]}",
        "{key: [locality.zone]}",
    ] {
        assert_eq!(of(checked, ""), [""; 0], "{checked}");
    }
    let everybody = good(&format!(
        "node: {{id: r}}\nclasses: [{ns}]\nrules: [{{name: all}}]\n{SERVER}"
    ));
    assert_eq!(everybody.warnings, [""; 0]);
}
