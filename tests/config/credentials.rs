// SPDX-License-Identifier: Apache-2.0
//! The credentials of a class of clients, and the errors for invalid ones.

use distributary::config::{Config, Credentials, Flags};

use crate::parse;

const TLS: &str = "upstream: {xds_servers: [{server_uri: 'https://cp:1'}]}\n";
const CLEAR: &str = "upstream: {xds_servers: [{server_uri: 'cp:1'}]}\n";

fn class(credentials: &str) -> String {
    format!("classes:\n  - key: [cluster, metadata.NAMESPACE]\n    credentials: {{ {credentials} }}\n")
}

fn warnings(text: &str) -> Vec<String> {
    Config::parse(text, "relay.yaml", &Flags::default()).unwrap().warnings
}

/// K-29: a path takes only fields of the key; every error has its place.
#[test]
fn paths_take_fields_of_the_key() {
    #[rustfmt::skip]
    let rows = [
        ("certificate_file: 'a/{locality.zone}', private_key_file: b",
            "relay.yaml:4:38: classes[0].credentials.certificate_file: `{locality.zone}` is not in `key`"),
        ("certificate_file: a",
            "relay.yaml:4:38: classes[0].credentials: certificate_file and private_key_file go together"),
        ("jwt_token_file: ''", "classes[0].credentials.jwt_token_file: the path is empty"),
        ("jwt_token_file: '{cluster'", "has an unmatched brace"),
        ("", "classes[0].credentials: it is empty"),
        ("ca_certificate_file: a", "unknown field `ca_certificate_file`"),
    ];
    for (credentials, said) in rows {
        let refused = parse(&format!("{TLS}{}", class(credentials))).unwrap_err();
        assert!(refused.contains(said), "{credentials}: {refused}");
    }
}

/// K-29: warnings say that any client of the class gets that view, and that no credentials are sent without TLS.
#[test]
fn what_credentials_mean_is_said() {
    let good = class("certificate_file: 'a/{cluster}', private_key_file: b, jwt_token_file: 'c/{metadata.NAMESPACE}'");
    let all = warnings(&format!("{TLS}{good}"));
    let [said] = &all[..] else { panic!("{all:?}") };
    let words = "relay.yaml:4:38: classes[0].credentials: every client is in this class and gets all resources";
    assert!(said.starts_with(words), "{said}");
    let matching = good.replace("  - key", "  - match: { cluster: a }\n    key");
    assert!(warnings(&format!("{TLS}{matching}"))[0].contains("every client whose node matches is"));

    let refused = parse(&format!("{CLEAR}{good}")).unwrap_err();
    assert!(
        refused.contains("no server of xds_servers is reached over TLS"),
        "{refused}"
    );
    let mixed = format!("upstream: {{xds_servers: [{{server_uri: 'https://cp:1'}}, {{server_uri: 'cp:2'}}]}}\n{good}");
    let all = warnings(&mixed);
    assert!(
        all.len() == 2 && all[0].contains("cp:2 is reached without TLS"),
        "{all:?}"
    );
}

/// K-29: there is no warning where the identity of a client decides which files are used for it.
#[test]
fn an_identity_can_decide_by_which_credentials() {
    let class = |class: &str, file: &str| {
        let credentials =
            format!("{class}    credentials: {{ certificate_file: '{file}', private_key_file: '{file}.key' }}\n");
        warnings(&format!("{TLS}classes:\n{credentials}"))
    };
    let spiffe =
        "  - match: { identity.spiffe: 'spiffe://td/ns/{ns}/sa/*', cluster: 'c-{zone}' }\n    key: [ns, zone]\n";
    for (rule, file) in [
        (spiffe, "/certs/{ns}.pem"),
        (spiffe, "/certs/all.pem"),
        ("  - key: [identity.dns]\n", "/certs/{identity.dns}.pem"),
    ] {
        assert_eq!(class(rule, file), [""; 0], "{rule} {file}");
    }
    #[rustfmt::skip]
    let rows = [
        (spiffe, "/certs/{zone}.pem", "every client that matches chooses these files by its `zone` and gets"),
        ("  - match: { cluster: '{ns}' }\n    key: [ns]\n", "/certs/{ns}.pem", "every client whose node matches is in"),
        ("  - key: [identity.dns]\n", "/certs/all.pem", "every client is in this class"),
    ];
    for (rule, file, said) in rows {
        let all = class(rule, file);
        assert!(all.len() == 1 && all[0].contains(said), "{rule} {file}: {all:?}");
    }
}

/// A TLS server name must be a valid name.
#[test]
fn a_server_has_a_good_name() {
    let server =
        |creds: &str| format!("upstream: {{xds_servers: [{{server_uri: 'cp:1', channel_creds: [{creds}]}}]}}\n");
    for name in ["cp.example.com", "10.0.0.1", "'::1'"] {
        assert!(parse(&server(&format!("{{type: tls, config: {{server_name: {name}}}}}"))).is_ok());
    }
    for name in ["''", "'cp:443'", "'a b'", "'https://cp'"] {
        let refused = parse(&server(&format!("{{type: tls, config: {{server_name: {name}}}}}"))).unwrap_err();
        assert!(refused.contains("config.server_name: "), "{refused}");
    }
    for id in ["spiffe://mesh", "spiffe://mesh.example.com/ns/a/sa/B_1"] {
        let given = format!("{{type: tls, config: {{server_name: '{id}', ca_certificate_file: ca.pem}}}}");
        let config = parse(&server(&given)).unwrap();
        let Credentials::Tls(tls) = &crate::first(&config).credentials else {
            panic!("{id}");
        };
        assert_eq!((tls.spiffe_id.as_deref(), &tls.server_name), (Some(id), &None));
        let refused = parse(&server(&format!("{{type: tls, config: {{server_name: '{id}'}}}}"))).unwrap_err();
        assert!(refused.contains("a SPIFFE id needs ca_certificate_file"), "{refused}");
    }
    for id in [
        "spiffe://",
        "spiffe://Mesh/a",
        "spiffe://mesh/",
        "spiffe://mesh/a//b",
        "spiffe://mesh/..",
        "spiffe://mesh:1/a",
    ] {
        let given = format!("{{type: tls, config: {{server_name: '{id}', ca_certificate_file: ca.pem}}}}");
        let refused = parse(&server(&given)).unwrap_err();
        assert!(refused.contains("is not a SPIFFE id"), "{refused}");
    }
    let refused = parse(&server("{type: insecure, config: {server_name: cp}}")).unwrap_err();
    assert!(refused.contains("server_name has no use with insecure"), "{refused}");
}
