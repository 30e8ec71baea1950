//! How long one request of many names takes. Run with `cargo test --release --test cache -- --ignored --nocapture work`.

#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "figures for people")]

use cache::Library;
use proto::envoy::service::discovery::v3::{DeltaDiscoveryRequest, DiscoveryRequest};
use protocol::{ClientRequest, Server};
use xds::{Dialect, Sight};

use super::*;

const NAMES: usize = 190_000;

struct Client {
    server: Server,
    seat: Seat,
    library: Arc<Library>,
    dialect: Dialect,
    nonce: String,
}

impl Client {
    /// Makes a request, and prints the time of the machine, of the index of wanted names, and of the answer: in all, and for the
    /// longest slice or response.
    fn request(&mut self, what: &str, subscribe: &[String], unsubscribe: &[String]) {
        let now = start();
        let (mut machine, mut wants, mut answer) = <(Steps, Steps, Steps)>::default();
        let Self {
            server,
            seat,
            library,
            nonce,
            dialect,
        } = self;
        let type_url = eds().url().to_owned();
        let library = &**library;
        let mut seated = |server: &mut Server| {
            wants.step(|| {
                while let Some(want) = server.poll_want() {
                    assert_eq!(seat.want(&want), Ok(()));
                }
            });
        };
        let request = match *dialect {
            Dialect::Sotw => ClientRequest::from(DiscoveryRequest {
                type_url,
                resource_names: subscribe.to_vec(),
                response_nonce: nonce.clone(),
                ..Default::default()
            }),
            Dialect::Delta => ClientRequest::from(DeltaDiscoveryRequest {
                type_url,
                resource_names_subscribe: subscribe.to_vec(),
                resource_names_unsubscribe: unsubscribe.to_vec(),
                ..Default::default()
            }),
        };
        let mut progress = machine.step(|| server.begin(request, library, now)).unwrap();
        while machine.step(|| server.go_on(&mut progress, library, now)).unwrap() {
            seated(server);
        }
        server.finish(progress).unwrap();
        seated(server);
        loop {
            let sight = Sight::from(seat.view().cut());
            let Some(response) = answer.step(|| server.poll_response(&sight, library, now)) else {
                if server.is_short() {
                    continue;
                }
                break;
            };
            *nonce = String::from_utf8(response.nonce.as_bytes().to_vec()).unwrap();
            if *dialect == Dialect::Delta {
                let receipt = server.handle_acknowledgement(eds().url().as_bytes(), nonce.as_bytes());
                assert!(receipt.is_some());
            }
        }
        if what.is_empty() {
            return;
        }
        println!("{dialect:?}, {what}: machine {machine}, index {wants}, answer {answer}");
    }
}

/// The time that something took, and its longest step.
#[derive(Default)]
struct Steps {
    all: Duration,
    longest: Duration,
}

impl Steps {
    fn step<T>(&mut self, step: impl FnOnce() -> T) -> T {
        let begun = start();
        let outcome = step();
        self.longest = self.longest.max(begun.elapsed());
        self.all += begun.elapsed();
        outcome
    }
}

impl std::fmt::Display for Steps {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:.1?} ({:.1?})", self.all, self.longest)
    }
}

/// Prints how long each step takes.
#[test]
#[ignore = "prints figures"]
fn requests_of_many_names() {
    let names = |from: usize| -> Vec<String> {
        let numbers = (from..from + NAMES).map(|n| n * 7919 % 1_000_003);
        let names = numbers.map(|n| format!("outbound|8080||service-{n}.namespace.svc.cluster.local"));
        names.collect()
    };
    let (some, others) = (names(0), names(500_000));
    let mut backwards = some.clone();
    backwards.reverse();
    for (known, dialect) in [
        (false, Dialect::Sotw),
        (false, Dialect::Delta),
        (true, Dialect::Sotw),
        (true, Dialect::Delta),
    ] {
        let settings = ViewSettings {
            names_per_view: 0,
            ..settings()
        };
        let view = View::new(Class::default(), settings);
        let seat = view.enter();
        if known {
            let updates = some.iter().chain(&others).map(|name| put(&eds(), name, "body"));
            drop(view.publish(&[named(&eds(), updates.collect())]));
        }
        let mut client = Client {
            server: opened(stream(StreamLimits::default()), dialect, 1),
            seat,
            library: Arc::new(Library::new(64 << 20, 2 << 20)),
            dialect,
            nonce: String::new(),
        };
        println!("known: {known}");
        client.request("first", &some, &[]);
        client.request("the same", &some, &[]);
        client.request("the same backwards", &backwards, &[]);
        match dialect {
            Dialect::Sotw => client.request("one less", &some[1..], &[]),
            Dialect::Delta => client.request("one less", &[], &some[..1]),
        }
        client.request("all others", &others, &some);
        client.request("and back", &some, &others);
    }
}

/// Prints how long it takes until a client that comes has the fifty names that it asks for.
#[test]
#[ignore = "prints figures"]
fn clients_that_join() {
    const CLIENTS: usize = 2000;
    let names: Vec<String> = (0..50).map(|n| format!("cluster-{n:05}.endpoints")).collect();
    for dialect in [Dialect::Sotw, Dialect::Delta] {
        let view = View::new(Class::default(), settings());
        let updates = names.iter().map(|name| put(&eds(), name, "body"));
        drop(view.publish(&[named(&eds(), updates.collect())]));
        let library = Arc::new(Library::new(64 << 20, 2 << 20));
        let mut all = Steps::default();
        let mut clients = Vec::new();
        for _ in 0..CLIENTS {
            clients.push(Client {
                server: opened(stream(StreamLimits::default()), dialect, 1),
                seat: view.enter(),
                library: library.clone(),
                dialect,
                nonce: String::new(),
            });
            let client = clients.last_mut().unwrap();
            all.step(|| client.request("", &names, &[]));
        }
        println!("{dialect:?}: {:.1?} for each client", all.all / CLIENTS as u32);
    }
}
