//! Tests that clients reach a server that runs already, over TLS, and ask it for names that they found there.

use std::net::SocketAddr;
use std::sync::Arc;

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
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            let serve = async {
                let listener = TcpListener::from_std(socket).unwrap();
                loop {
                    let (client, _) = listener.accept().await.unwrap();
                    let acceptor = acceptor.clone();
                    tokio::task::spawn_local(async move {
                        let Ok(mut client) = acceptor.accept(client).await else {
                            return;
                        };
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
    let papers = Arc::new(Papers::new(true).unwrap());
    let front = Front::start(&papers);
    let shown = papers.identity().certificate.parent().unwrap().join("client.test");
    let scenario = Scenario::parse("here", TEXT).unwrap();
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

#[test]
fn certificates_are_for_tls() {
    let scenario = Scenario::parse("here", TEXT).unwrap();
    for words in [
        "--server 127.0.0.1:1 --ca x",
        "--upstream 127.0.0.1:1 --ca x",
        "--direct --ca x",
    ] {
        let fault = try_record(&scenario, words).unwrap_err().to_string();
        assert!(fault.contains("https://"), "{fault}");
    }
}
