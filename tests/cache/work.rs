// SPDX-License-Identifier: Apache-2.0
//! How long one request of many names takes. Run with `cargo test --release --test cache -- --ignored --nocapture work`.

#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "figures for people")]

use cache::Library;
use proto::envoy::service::discovery::v3::{DeltaDiscoveryRequest, DiscoveryRequest};
use proto::google::rpc::Status;
use protocol::{ClientRequest, Response, Server};
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

/// A delta stream of one type, and how long the calls of its machine take.
struct Stream {
    server: Server,
    type_url: TypeUrl,
    library: Library,
    sight: Sight,
    calls: Steps,
}

impl Stream {
    /// A view that knows `updates`, and a client that asks for these names and says that it holds others.
    fn new(type_url: TypeUrl, updates: Vec<Update>, subscribe: &[String], held: &[String]) -> Self {
        let settings = ViewSettings {
            names_per_view: 0,
            ..settings()
        };
        let view = View::new(Class::default(), settings);
        drop(view.publish(&[covered(&type_url, updates.clone()), named(&type_url, updates)]));
        let mut stream = Self {
            server: opened(stream(StreamLimits::default()), Dialect::Delta, 1),
            type_url,
            library: Library::new(64 << 20, 2 << 20),
            sight: Sight::from(view.cut()),
            calls: Steps::default(),
        };
        stream.request(DeltaDiscoveryRequest {
            resource_names_subscribe: subscribe.to_vec(),
            initial_resource_versions: held.iter().map(|name| (name.clone(), "1".to_owned())).collect(),
            ..Default::default()
        });
        stream
    }

    fn request(&mut self, request: DeltaDiscoveryRequest) {
        let now = start();
        let type_url = self.type_url.url().to_owned();
        let request = ClientRequest::from(DeltaDiscoveryRequest { type_url, ..request });
        let (server, library) = (&mut self.server, &self.library);
        let mut progress = self.calls.step(|| server.begin(request, library, now)).unwrap();
        while self.calls.step(|| server.go_on(&mut progress, library, now)).unwrap() {}
        server.finish(progress).unwrap();
        while server.poll_want().is_some() {}
    }

    fn next(&mut self) -> Option<Response> {
        let (server, sight, library) = (&mut self.server, &self.sight, &self.library);
        loop {
            let response = self.calls.step(|| server.poll_response(sight, library, start()));
            if response.is_some() || !server.is_short() {
                return response;
            }
        }
    }

    /// Takes all responses, and prints how long everything took since it printed last.
    fn takes(mut self, what: &str) -> Self {
        let mut entries = 0;
        while let Some(response) = self.next() {
            entries += response.batch.items().len() + response.batch.removed().len();
            let (type_url, nonce) = (self.type_url.url().as_bytes(), response.nonce);
            let receipt = self.server.handle_acknowledgement(type_url, nonce.as_bytes());
            assert!(receipt.is_some());
        }
        println!("{what}: {entries} entries, {}", self.calls);
        self.calls = Steps::default();
        self
    }

    /// Rejects all responses, and names a half of each.
    fn rejects(mut self) {
        let mut count = 0;
        while let Some(response) = self.next() {
            let items = response.batch.items().iter();
            let names: Vec<&str> = items.map(|item| item.name().as_str()).collect();
            let message = names
                .iter()
                .skip(names.len() / 2)
                .copied()
                .collect::<Vec<_>>()
                .join(" ");
            self.request(DeltaDiscoveryRequest {
                response_nonce: response.nonce.to_string(),
                error_detail: Some(Status {
                    code: 3,
                    message,
                    ..Default::default()
                }),
                ..Default::default()
            });
            count += 1;
        }
        println!("{count} responses, all rejected: {}", self.calls);
    }
}

/// Prints how long the calls of a stream take where each of many names has to do with each of many others.
#[test]
#[ignore = "prints figures"]
fn names_that_have_to_do_with_each_other() {
    const MANY: usize = 10_000;
    let texts = |what: &str| -> Vec<String> { (0..MANY).map(|n| format!("{what}-{n:06}")).collect() };
    let (some, others) = (texts("some"), texts("others"));
    let nothing = some.iter().map(|name| absent(name)).collect();
    let stream = Stream::new(addresses(), nothing, &some, &others);
    stream.takes("names that may be aliases, and others that the client holds");
    for type_url in [addresses(), TypeUrl::new("unknown")] {
        let updates = some.iter().map(|name| put(&type_url, name, "body")).collect();
        let mut stream = Stream::new(type_url.clone(), updates, &some, &[]).takes(type_url.url());
        let all = some.iter().map(|name| Name::from(name.as_str())).collect();
        stream
            .calls
            .step(|| stream.server.handle_dirty(&stream.type_url, Dirty::Names(all)));
        let mut stream = stream.takes("all change");
        stream.request(DeltaDiscoveryRequest {
            resource_names_unsubscribe: some.clone(),
            ..Default::default()
        });
        stream.takes("all are given up");
    }
    let updates = || some.iter().map(|name| put(&eds(), name, "body")).collect();
    Stream::new(eds(), updates(), &some, &[]).rejects();
    let all = [vec!["*".to_owned()], some.clone()].concat();
    let mut stream = Stream::new(eds(), updates(), &all, &[]).takes("a wildcard, and names beside it");
    stream.request(DeltaDiscoveryRequest {
        resource_names_subscribe: vec!["*".to_owned()],
        ..Default::default()
    });
    stream.takes("the wildcard again");

    let (_, short) = eds()
        .url()
        .split_once('/')
        .map(|(to, of)| (to.to_owned(), of.to_owned()))
        .unwrap();
    let member = |name: &String| {
        put(
            &eds(),
            &format!("xdstp://a/{short}/{name}?a=1&b=1&c=1&d=1&e=1&f=1"),
            "body",
        )
    };
    let spellings: Vec<String> = orders("abcdef")
        .iter()
        .map(|order| {
            let parameters: Vec<String> = order.chars().map(|letter| format!("{letter}=1")).collect();
            format!("xdstp://a/{short}/*?{}", parameters.join("&"))
        })
        .collect();
    let updates = some.iter().map(member).collect();
    let mut stream = Stream::new(eds(), updates, &spellings[..1], &[]).takes("a collection");
    for (begun, ended) in [
        (spellings.clone(), Vec::new()),
        (vec![spellings[0].clone(); MANY], Vec::new()),
        (Vec::new(), spellings),
    ] {
        let what = format!(
            "{} texts of a collection that begin, and {} that end",
            begun.len(),
            ended.len()
        );
        stream.request(DeltaDiscoveryRequest {
            resource_names_subscribe: begun,
            resource_names_unsubscribe: ended,
            ..Default::default()
        });
        stream = stream.takes(&what);
    }
}

/// Prints how long a view takes where each of many names has to do with each of many others.
#[test]
#[ignore = "prints figures"]
fn names_of_a_view_that_have_to_do_with_each_other() {
    let name = |n: usize| format!("xdstp://a/{}/{n:06}", eds().message());
    let names: Vec<String> = (0..10_000).map(name).collect();
    let collections: Vec<String> = names.iter().map(|name| format!("{name}/*")).collect();
    let settings = ViewSettings {
        names_per_view: 0,
        linger: Duration::ZERO,
        ..settings()
    };
    let seat = View::new(Class::default(), settings).enter();
    let want_all = |names: &[String], wanted: bool| {
        let all = names.iter().map(|name| want(&eds(), name, wanted));
        all.for_each(|want| assert_eq!(seat.want(&want), Ok(())));
    };
    let turns = |what: &str| {
        let mut turns = Steps::default();
        while !turns.step(|| seat.view().take_wants(start())).is_empty() {}
        println!("{what}: {turns}");
    };
    want_all(&names, true);
    want_all(&collections, true);
    turns("names and collections begin");
    let whole = collections.iter().map(|name| Update::Whole(name.as_str().into()));
    let (whole, mut published) = ([named(&eds(), whole.collect())], Steps::default());
    published.step(|| drop(seat.view().publish(&whole)));
    println!("the collections are complete: {published}");
    want_all(&collections, false);
    turns("the collections end");
}

/// Returns the letters of a text in all orders.
fn orders(letters: &str) -> Vec<String> {
    letters.chars().fold(vec![String::new()], |orders, letter| {
        let with = |order: &String| {
            let at = 0..=order.len();
            let order = order.clone();
            at.map(move |at| format!("{}{letter}{}", &order[..at], &order[at..]))
                .collect::<Vec<_>>()
        };
        orders.iter().flat_map(with).collect()
    })
}
