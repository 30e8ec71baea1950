// SPDX-License-Identifier: Apache-2.0
//! Certificates from a SPIFFE Workload API: what operators see of them, and what they are told if there is none.

use distributary::proto::spiffe::workload::X509svid;
use rcgen::{CertificateParams, KeyPair, SanType, SerialNumber};
use serde_json::Value;

use crate::agent::{Agent, Answer};
use crate::certificates::certs;
use crate::{Relay, address_in, ask, file, has, output, program};

fn svid(serial: u64) -> Answer {
    let mut params = CertificateParams::new([]).unwrap();
    let uri = SanType::URI("spiffe://mesh/relay".try_into().unwrap());
    params.subject_alt_names.push(uri);
    params.serial_number = Some(SerialNumber::from(serial));
    let key = KeyPair::generate().unwrap();
    let certificate = params.self_signed(&key).unwrap().der().to_vec();
    Answer::of(vec![X509svid {
        spiffe_id: "spiffe://mesh/relay".to_owned(),
        x509_svid: certificate.clone().into(),
        x509_svid_key: key.serialize_der().into(),
        bundle: certificate.into(),
        hint: String::new(),
    }])
}

/// K-35: a listener, the admin address and a control plane share the socket in the environment. What comes from there is shown as
/// from a file, also while the agent is away; that is told once for each, and counted.
#[test]
fn one_agent_for_all() {
    let config = file(
        "spiffe.yaml",
        "upstream: {xds_servers: [{server_uri: '127.0.0.1:1', channel_creds: [{type: tls, config: {spiffe: {}}}]}]}\n\
         admin: {address: '127.0.0.1:0'}\n\
         listeners: [{address: '127.0.0.1:0', tls: {spiffe: {}}}]\n",
    );
    let socket = std::env::temp_dir().join(format!("distributary-agent-{}.sock", std::process::id()));
    let agent = Agent::start(&socket, svid(1));
    let mut serve = program(&["serve", "--config", config.to_str().unwrap()]);
    serve.env("SPIFFE_ENDPOINT_SOCKET", format!("unix://{}", socket.display()));
    let relay = Relay::start(serve);
    let admin = address_in(&relay.line("admin address"));
    let of_both = |shown: &Value, serial: &str| {
        let all = shown["certificates"].as_array().unwrap().clone();
        all.len() == 2
            && all.iter().all(|set| {
                let own = &set["cert_chain"][0];
                own["serial_number"] == serial && set["ca_cert"][0] == *own
            })
    };
    let origin = format!("unix:{}", socket.display());
    let shown = certs(&admin, |shown| of_both(shown, "01"));
    assert_eq!(shown["certificates"][0]["cert_chain"][0]["path"], origin.as_str());
    let expiry = format!("distributary_certificate_expiry_timestamp_seconds{{path=\"{origin}\"}} ");
    has(&ask(&admin, "GET /metrics"), &expiry);

    agent.send(svid(2));
    certs(&admin, |shown| of_both(shown, "02"));
    drop(agent);
    let two = |shown: &Value| shown["faults"].as_object().is_some_and(|all| all.len() == 2);
    let shown = certs(&admin, two);
    assert!(of_both(&shown, "02"), "{shown}");
    let lines = [(); 2].map(|()| relay.line(&format!("{origin}: cannot connect")));
    for told in [
        "cannot be used; keeping those from before",
        "towards the control plane cannot be read",
    ] {
        assert!(lines.iter().any(|line| line.contains(told)), "{lines:?}");
    }
    let counted = "distributary_certificate_reloads_total{result=\"bad\"} 2";
    has(&ask(&admin, "GET /metrics"), counted);

    let _agent = Agent::start(&socket, svid(3));
    let shown = certs(&admin, |shown| of_both(shown, "03") && shown.get("faults").is_none());
    assert!(of_both(&shown, "03"), "{shown}");
}

/// Without an agent the relay does not start, and `validate` fails: both say where it should be, and what to do.
#[test]
fn no_agent() {
    let config = file(
        "no-agent.yaml",
        "upstream: {xds_servers: [{server_uri: 'cp:1'}]}\n\
         listeners: [{address: '127.0.0.1:0', tls: {spiffe: {socket: 'unix:///nowhere/agent.sock'}}}]\n",
    );
    let config = config.to_str().unwrap();
    let why = "unix:/nowhere/agent.sock: no SVID for `spiffe`: cannot connect: No such file or directory (os error 2); is the agent \
               running, and is the relay registered with it as a workload?";
    let validate = std::thread::scope(|scope| {
        let validate = scope.spawn(|| output(&["validate", config]));
        let (code, _, error) = output(&["serve", "--config", config]);
        assert_eq!(code, Some(1));
        assert!(error.ends_with(&format!("tls of 127.0.0.1:0: {why}\n")), "{error}");
        validate.join().unwrap()
    });
    let said = format!("{config}: listeners[0].tls: {why}\n");
    assert_eq!(validate, (Some(1), String::new(), said));
}
