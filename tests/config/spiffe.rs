// SPDX-License-Identifier: Apache-2.0
//! Where a SPIFFE Workload API is, and what is said of wrong ones.

use distributary::config::{CertificateFiles, Config, Credentials, Flags, Reach, Supply, Workload};

const SERVER: &str = "upstream: {xds_servers: [{server_uri: 'cp:1'}]}\n";

/// The relay's own file, with this `tls` at its listener.
fn listener(tls: &str) -> String {
    format!("{SERVER}listeners: [{{address: '0.0.0.0:1', tls: {{{tls}}}}}]\n")
}

/// The same, with this `config` of the TLS towards its control plane.
fn server(config: &str) -> String {
    format!(
        "upstream: {{xds_servers: [{{server_uri: 'cp:1', channel_creds: [{{type: tls, config: {{{config}}}}}]}}]}}\n"
    )
}

fn refused(text: &str, flags: &Flags) -> String {
    Config::parse(text, "relay.yaml", flags).unwrap_err().to_string()
}

fn good(text: &str, flags: &Flags) -> Config {
    Config::parse(text, "relay.yaml", flags).unwrap()
}

fn api(socket: &str, hint: Option<&str>) -> Workload {
    Workload {
        socket: socket.into(),
        hint: hint.map(str::to_owned),
    }
}

fn environment(socket: &str) -> Flags {
    Flags {
        endpoint_socket: Some(socket.to_owned()),
        ..Flags::default()
    }
}

/// The certificate, and whom to trust, of the listener and of the admin address.
#[test]
fn listeners() {
    for (written, socket, hint) in [
        ("{socket: 'unix:///run/agent.sock'}", "/run/agent.sock", None),
        (
            "{socket: 'unix:/run/agent.sock', hint: internal}",
            "/run/agent.sock",
            Some("internal"),
        ),
        ("{socket: 'unix:@agent'}", "@agent", None),
        ("{hint: internal}", "/from/environment", Some("internal")),
        ("{}", "/from/environment", None),
    ] {
        let admin = format!("admin: {{address: '1.1.1.1:2', tls: {{spiffe: {written}}}}}\n");
        let text = listener(&format!("spiffe: {written}")) + &admin;
        let config = good(&text, &environment("unix:///from/environment"));
        let expected = api(socket, hint);
        for tls in [config.listeners[0].tls.clone(), config.admin_tls.clone()] {
            let tls = tls.unwrap();
            assert_eq!(tls.identity, Supply::Workload(expected.clone()), "{written}");
            assert_eq!(tls.client_ca, Some(Supply::Workload(expected.clone())), "{written}");
        }
        assert!(!config.admin_is_open());
    }
    let others = "spiffe: {socket: 'unix:/a'}, client_ca: b.pem, client_crl: c.pem, certificates: [{certificate: d, private_key: e}]";
    let tls = good(&listener(others), &Flags::default()).listeners[0]
        .tls
        .clone()
        .unwrap();
    assert_eq!(tls.client_ca, Some(Supply::Files("b.pem".into())));
    assert_eq!(tls.others.len(), 1);
    good(
        &listener("spiffe: {socket: 'unix:/a'}, client_crl: c.pem"),
        &Flags::default(),
    );
}

#[test]
fn control_planes() {
    let of = |config: &str| {
        let config = good(&server(config), &Flags::default());
        let Reach::Grpc(grpc) = config.upstream.servers[0].reach.clone() else {
            panic!("it streams")
        };
        let Credentials::Tls(tls) = grpc.credentials else {
            panic!("it has TLS")
        };
        (tls.identity, tls.authorities, tls.spiffe_id)
    };
    let all = api("/a", None);
    let id = "spiffe://mesh/cp".to_owned();
    assert_eq!(
        of(&format!("spiffe: {{socket: 'unix:/a'}}, server_name: '{id}'")),
        (
            Some(Supply::Workload(all.clone())),
            Some(Supply::Workload(all.clone())),
            Some(id)
        )
    );
    let (identity, authorities, _) = of("spiffe: {socket: 'unix:/a'}, ca_certificate_file: ca.pem");
    assert_eq!(
        (identity, authorities),
        (Some(Supply::Workload(all)), Some(Supply::Files("ca.pem".into())))
    );
    let files = CertificateFiles {
        certificate_file: "c".into(),
        private_key_file: "k".into(),
    };
    assert_eq!(of("certificate_file: c, private_key_file: k").0, Some(files.into()));
}

#[test]
fn complaints() {
    let no_socket = |text: &str| {
        format!(
            "`{text}` is not the Unix socket of a Workload API; write such as unix:///run/spire/agent/public/api.sock"
        )
    };
    let both = "`spiffe` brings the certificate and its key; remove one of them";
    #[rustfmt::skip]
    let rows = [
        (
            listener("spiffe: {}"),
            "2:50: listeners[0].tls.spiffe.socket: there is no socket; write such as \
             unix:///run/spire/agent/public/api.sock, or set SPIFFE_ENDPOINT_SOCKET"
                .to_owned(),
        ),
        (listener("spiffe: {socket: 'tcp://127.0.0.1:8081'}"),
            format!("2:59: listeners[0].tls.spiffe.socket: {}", no_socket("tcp://127.0.0.1:8081"))),
        (listener("spiffe: {socket: 'unix:agent.sock'}"),
            format!("2:59: listeners[0].tls.spiffe.socket: {}", no_socket("unix:agent.sock"))),
        (listener("spiffe: {socket: 'unix:/a', hint: ''}"),
            "2:76: listeners[0].tls.spiffe.hint: it is empty; remove it to take the first SVID".to_owned()),
        (listener("spiffe: {socket: 'unix:/a'}, certificate: c"),
            format!("2:84: listeners[0].tls.certificate: {both}")),
        (server("spiffe: {socket: 'unix:/a'}, private_key_file: k"),
            format!("1:131: upstream.xds_servers[0].channel_creds[0].config: {both}")),
        (
            server("spiffe: {socket: 'unix:/a'}").replace("type: tls", "type: insecure"),
            "1:97: upstream.xds_servers[0].channel_creds[0].config.spiffe: spiffe has no use with insecure; \
             remove it or write tls"
                .to_owned(),
        ),
    ];
    for (text, said) in rows {
        assert_eq!(
            refused(&text, &Flags::default()),
            format!("relay.yaml:{said}"),
            "{text}"
        );
    }
    assert_eq!(
        refused(&listener("spiffe: {}"), &environment("tcp://1.1.1.1:1")),
        format!(
            "relay.yaml:2:50: listeners[0].tls.spiffe: SPIFFE_ENDPOINT_SOCKET: {}",
            no_socket("tcp://1.1.1.1:1")
        )
    );
}
