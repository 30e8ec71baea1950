// SPDX-License-Identifier: Apache-2.0
//! Tests that clients reach a server that runs already, over TLS, and ask it for names that they found there.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;

use super::now;
use super::scenarios::try_record;
use crate::origin::control_plane::ControlPlane;
use crate::origin::ledger::Spec;
use crate::origin::world::World;
use crate::story::file::Scenario;
use crate::wire::kind::Kind;
use crate::wire::tls::{self, Papers};

/// A TLS proxy in front of a control plane; it stops when dropped.
struct Front {
    address: SocketAddr,
    /// The certificates that clients have shown.
    shown: Arc<Mutex<Vec<Vec<u8>>>>,
    _stop: oneshot::Sender<()>,
    _behind: ControlPlane,
}

impl Front {
    fn start(papers: &Papers) -> Self {
        let spec = |kind| Spec {
            kind,
            resources: 5,
            extras: 0,
            bytes: 300,
            authority: None,
        };
        let world = World::new(&[Kind::Cds, Kind::Eds, Kind::Lds, Kind::Rds].map(spec), now());
        let behind = ControlPlane::start("127.0.0.1:0".parse().unwrap(), world, None).unwrap();
        let acceptor = tls::acceptor(papers.identity(), papers.client_ca()).unwrap();
        let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        socket.set_nonblocking(true).unwrap();
        let (address, upstream) = (socket.local_addr().unwrap(), behind.address);
        let (stop, stopped) = oneshot::channel::<()>();
        let shown = Arc::<Mutex<Vec<Vec<u8>>>>::default();
        let seen = Arc::clone(&shown);
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            let serve = async {
                let listener = TcpListener::from_std(socket).unwrap();
                loop {
                    let (client, _) = listener.accept().await.unwrap();
                    let (acceptor, seen) = (acceptor.clone(), Arc::clone(&seen));
                    tokio::task::spawn_local(async move {
                        let Ok(mut client) = acceptor.accept(client).await else {
                            return;
                        };
                        if let Some([leaf, ..]) = client.get_ref().1.peer_certificates() {
                            seen.lock().unwrap().push(leaf.to_vec());
                        }
                        let mut server = TcpStream::connect(upstream).await.unwrap();
                        let _ = copy_bidirectional(&mut client, &mut server).await;
                    });
                }
            };
            tokio::task::LocalSet::new().block_on(&runtime, async {
                tokio::select! { () = serve => {}, _ = stopped => {} }
            });
        });
        Self {
            address,
            shown,
            _stop: stop,
            _behind: behind,
        }
    }
}

const TEXT: &str = "description: Strangers.
world: { cds: { count: 5, bytes: 300 } }
clients:
  count: 8
  groups:
    - { kind: envoy }
    - { kind: grpc, names: { count: 2 } }
    - { kind: grpc, dialect: sotw, names: { count: 1, random: true } }
    - { kind: endpoints, names: { count: 3 } }
phases:
  - { name: join, do: { join: {} }, limit: 20s }
  - { name: rest, do: { rest: 100ms } }
";

#[test]
fn clients_show_a_certificate_and_learn_what_there_is() {
    let papers = Arc::new(Papers::new(true, None).unwrap());
    let front = Front::start(&papers);
    let shown = papers.identity().certificate.parent().unwrap().join("client.test");
    let scenario = Scenario::read("here", TEXT, None, &[]).unwrap();
    let server = format!(
        "--server https://{} --server-name {} --ca {}",
        front.address,
        Papers::NAME,
        papers.identity().certificate.display()
    );
    let words = format!("{server} --cert {0}.pem --key {0}.key", shown.display());
    let record = try_record(&scenario, &words).unwrap();
    assert!(record.held(), "{:#?}\n{:#?}", record.assertions, record.breaches);
    let join = &record.phases[0];
    assert_eq!((join.clients, join.join.count()), (8, 8));
    // Envoys get five resources of each type. Other clients get two listeners or one, each with a route, its clusters and their
    // endpoints; or three endpoints.
    let resources = join.counters["resources"];
    let envoys = 2.0 * 20.0;
    assert!(resources > envoys + 2.0 * 3.0 + 2.0 * (4.0 + 2.0), "{resources}");

    let refused = format!("{:#}", try_record(&scenario, &server).unwrap_err());
    assert!(refused.contains("connection failed"), "{refused}");
    let unknown = try_record(&scenario, &format!("{words} --name nobody")).unwrap();
    let failed = unknown.assertions.iter().any(|it| !it.held());
    assert!(failed || unknown.phases[0].counters["resources"] < resources);
}

/// The flags for a server with these papers.
fn server(front: &Front, papers: &Papers) -> String {
    let ca = papers.identity().certificate.display();
    format!(
        "--server https://{} --server-name {} --ca {ca}",
        front.address,
        Papers::NAME
    )
}

#[test]
fn a_certificate_is_signed_for_each_client() {
    let papers = Papers::new(true, Some("unused".parse().unwrap())).unwrap();
    let front = Front::start(&papers);
    let ca = papers.client_ca().unwrap().with_extension("");
    let scenario = Scenario::read("here", TEXT, None, &[]).unwrap();
    let words = format!(
        "{} --client-ca {1}.pem --client-ca-key {1}.key --client-name spiffe://example.org/ns/{{n%2}}/sa/web-{{n}}",
        server(&front, &papers),
        ca.display()
    );
    let record = try_record(&scenario, &words).unwrap();
    assert!(record.held(), "{:#?}\n{:#?}", record.assertions, record.breaches);
    let shown = front.shown.lock().unwrap();
    for number in 0..8 {
        let name = format!("spiffe://example.org/ns/{}/sa/web-{number}", number % 2);
        let has = |leaf: &&Vec<u8>| leaf.windows(name.len()).any(|part| part == name.as_bytes());
        assert!(shown.iter().any(|leaf| has(&leaf)), "nobody has shown {name}");
    }
    let other = papers.identity().key.display();
    let words = words.replace(&format!("{}.key", ca.display()), &other.to_string());
    let refused = format!("{:#}", try_record(&scenario, &words).unwrap_err());
    assert!(refused.contains("do the two belong together?"), "{refused}");
}

#[test]
fn each_client_reads_a_certificate_of_its_own() {
    let papers = Papers::new(true, None).unwrap();
    let front = Front::start(&papers);
    let ca = papers.client_ca().unwrap().with_extension("");
    let scenario = Scenario::read("here", TEXT, None, &[]).unwrap();
    let own = |number: u32| ca.with_file_name(format!("own-{number}"));
    for number in 0..8 {
        for end in ["pem", "key"] {
            std::fs::copy(format!("{}.{end}", ca.display()), own(number).with_extension(end)).unwrap();
        }
    }
    let files = ca.with_file_name("own-{n}");
    let words = format!(
        "{} --cert {1}.pem --key {1}.key",
        server(&front, &papers),
        files.display()
    );
    let record = try_record(&scenario, &words).unwrap();
    assert!(record.held(), "{:#?}\n{:#?}", record.assertions, record.breaches);
    std::fs::remove_file(own(5).with_extension("key")).unwrap();
    std::fs::remove_file(own(7).with_extension("pem")).unwrap();
    let refused = format!("{:#}", try_record(&scenario, &words).unwrap_err());
    assert!(
        refused.contains("own-5.key: client 5 needs this file, which is not there; 1 more are missing"),
        "{refused}"
    );
}

/// A pattern may need more files than there are, and more than can be open: both are told before anything starts.
#[test]
fn a_pattern_that_needs_a_hundred_thousand_files() {
    let scenario = Scenario::read("here", &TEXT.replace("count: 8", "count: 100000"), None, &[]).unwrap();
    let words = "--server https://127.0.0.1:1 --cert nowhere/{n}.pem --key nowhere/{n}.key";
    let refused = format!("{:#}", try_record(&scenario, words).unwrap_err());
    let missing = "nowhere/0.pem: client 0 needs this file, which is not there; 199999 more are missing";
    let open = "open files are needed, but the hard limit is ";
    assert!(refused.contains(missing) || refused.contains(open), "{refused}");
}

#[test]
fn certificates_are_for_tls() {
    let scenario = Scenario::read("here", TEXT, None, &[]).unwrap();
    for words in [
        "--server 127.0.0.1:1 --ca x",
        "--upstream 127.0.0.1:1 --ca x",
        "--direct --ca x",
        "--server 127.0.0.1:1 --client-ca x --client-ca-key y --client-name z",
    ] {
        let fault = try_record(&scenario, words).unwrap_err().to_string();
        assert!(fault.contains("https://"), "{fault}");
    }
}
