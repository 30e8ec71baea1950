// SPDX-License-Identifier: Apache-2.0
//! What the clients of a view read of other servers (D-11, D-12), where only some of them have fallen back.

#![expect(clippy::expect_used, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::time::Duration;

use cache::{Claims, Route, Routes, Scopes, Seat, View, other_views};
use classes::Node;

use super::*;

/// A view, of another server or the view itself.
type Place = Option<usize>;

/// Two lists, which end with the same server.
struct Stage {
    scopes: Arc<Scopes>,
}

/// The seats of one client.
type Client = Vec<Seat>;

/// The server at the end of both lists, and those that are first.
const LAST: usize = 0;
const FIRST: usize = 1;
const FIRST_OF_SOURCE: usize = 2;

impl Stage {
    fn new() -> Self {
        let route = |servers: [usize; 2]| Route {
            servers: Arc::new(servers),
            ..Route::default()
        };
        let source = Arc::from("source");
        let routes = Routes::new(route([FIRST, LAST]), [(source, route([FIRST_OF_SOURCE, LAST]))].into());
        Self {
            scopes: Arc::new(Scopes::new(Classes::default(), routes, settings(), 0)),
        }
    }

    fn seat(&self, owner: Option<&str>, server: usize, claims: &Arc<Claims>) -> Seat {
        let owner = owner.map(Arc::from);
        let node = Arc::<Node>::default();
        self.scopes
            .seat(&node, owner.as_ref(), false, server, claims)
            .expect("there is room")
    }

    /// A client begins to read these servers: of the names of old style, and of the source.
    fn client(&self, plain: usize, source: usize) -> Client {
        let claims = self.scopes.claims();
        vec![
            self.seat(None, plain, &claims),
            self.seat(Some("source"), source, &claims),
        ]
    }

    fn view(&self, server: usize) -> Arc<View> {
        let mut all = self.scopes.all().into_iter();
        all.find(|view| view.server() == server).expect("it is open")
    }

    /// From which servers those clients read what `of` has that read what `from` has at the last server.
    fn read(&self, from: Option<&str>, of: Option<&str>) -> Vec<usize> {
        let other_views = other_views(&self.scopes, &self.view(LAST), false).expect("there are sources");
        let found = other_views.views(from, &cds(), &name(of));
        found.into_iter().map(|found| self.server(found.view)).collect()
    }

    /// All that counts for what the last server has.
    fn all(&self) -> usize {
        let other_views = other_views(&self.scopes, &self.view(LAST), false).expect("there are sources");
        other_views.all().len()
    }

    fn server(&self, place: Place) -> usize {
        let number = |view: &Arc<View>| Arc::as_ptr(view).addr();
        let of = |at| {
            self.scopes
                .all()
                .iter()
                .find(|view| number(view) == at)
                .expect("it is open")
                .server()
        };
        place.map_or(LAST, of)
    }
}

/// A cluster of this owner.
fn name(owner: Option<&str>) -> Name {
    match owner {
        None => "a".into(),
        Some(authority) => format!("xdstp://{authority}/envoy.config.cluster.v3.Cluster/a")
            .as_str()
            .into(),
    }
}

/// Some have fallen back for the one, some for the other, and some for both: what one of them reads together counts together.
#[test]
fn who_reads_both() {
    let stage = Stage::new();
    let both = stage.client(LAST, LAST);
    assert_eq!(stage.read(None, Some("source")), [LAST]);
    assert_eq!(stage.all(), 0);

    let plain = stage.client(LAST, FIRST_OF_SOURCE);
    assert_eq!(stage.read(None, Some("source")), [FIRST_OF_SOURCE, LAST]);
    assert_eq!(stage.read(Some("source"), None), [LAST]);
    assert_eq!(stage.all(), 1);

    let source = stage.client(FIRST, LAST);
    assert_eq!(stage.read(Some("source"), None), [FIRST, LAST]);
    assert_eq!(stage.all(), 2);

    // Nobody reads the servers that are first and the last one, for names of different owners.
    let first = stage.client(FIRST, FIRST_OF_SOURCE);
    drop((plain, source));
    assert_eq!(stage.read(None, Some("source")), [LAST]);
    assert_eq!(stage.read(Some("source"), None), [LAST]);
    assert_eq!(stage.all(), 0);

    // Each on a connection of its own: nobody knows that it is one client.
    drop(both);
    let apart = [stage.seat(None, LAST, &stage.scopes.claims())];
    assert_eq!(stage.read(None, Some("source")), [FIRST_OF_SOURCE]);
    drop((first, apart));
}

/// What one owner has, a client reads from one view.
#[test]
fn one_owner() {
    let stage = Stage::new();
    let clients = [stage.client(LAST, LAST), stage.client(FIRST, FIRST_OF_SOURCE)];
    assert_eq!(stage.read(None, None), [LAST]);
    assert_eq!(stage.read(Some("source"), Some("source")), [LAST]);
    drop(clients);
}

/// A client that only watches a server does not read it.
#[test]
fn who_stands_by() {
    let stage = Stage::new();
    let clients = [stage.client(LAST, LAST), stage.client(LAST, FIRST_OF_SOURCE)];
    clients[1][1].watch(true);
    assert_eq!(stage.read(None, Some("source")), [LAST]);
    clients[1][1].watch(false);
    assert_eq!(stage.read(None, Some("source")), [FIRST_OF_SOURCE, LAST]);
}

/// A client wants a name of one view.
#[test]
fn who_asks() {
    let stage = Stage::new();
    let clients = [stage.client(LAST, LAST), stage.client(LAST, FIRST_OF_SOURCE)];
    let name = name(Some("source"));
    let want = want(&cds(), name.as_str(), true);
    let wanting = || {
        let other_views = other_views(&stage.scopes, &stage.view(LAST), false).unwrap();
        let places = other_views.wanting(&cds(), &name).into_iter();
        places.map(|place| stage.server(place)).collect::<Vec<_>>()
    };
    assert!(wanting().is_empty());
    clients[0][1].want(&want).unwrap();
    assert_eq!(wanting(), [LAST]);
    clients[1][1].want(&want).unwrap();
    assert_eq!(wanting(), [FIRST_OF_SOURCE, LAST]);
}

/// A writer that waits is told who comes and goes, also at its own view.
#[tokio::test(start_paused = true)]
async fn a_writer_that_waits() {
    let stage = Stage::new();
    let clients = [stage.client(LAST, LAST), stage.client(FIRST, FIRST_OF_SOURCE)];
    let view = stage.view(LAST);
    let come = || tokio::time::timeout(Duration::from_secs(1), view.mailbox().changed());
    let look = || drop(other_views(&stage.scopes, &view, true));
    let _ = come().await;
    for seat in clients.iter().flatten() {
        for watches in [true, false] {
            look();
            assert!(come().await.is_err());
            seat.watch(watches);
            assert!(come().await.is_ok());
        }
    }
}
