// SPDX-License-Identifier: Apache-2.0
//! Stories of sessions that must be woken when the state of a server changes.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Wake, Waker};

use distributary::xds::ServerState::{Failing, Trying, Up};

use crate::stage::{EDS, Stage};

/// Counts how often a session is woken.
#[derive(Default)]
struct Calls(AtomicUsize);

impl Wake for Calls {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// G-06: a session that has just taken a seat at the next server's view is woken when the state of that server changes.
#[test]
fn a_new_seat_is_listened_to() {
    let stage = Stage::new(&[0, 1, 2], &[], false);
    let mut session = stage.session(1);
    session.asks(&stage, EDS, &["x"]);
    let calls = Arc::new(Calls::default());
    let waker = Waker::from(calls.clone());
    stage.stands(0, Failing);
    let place = session.place.as_mut().expect("it has asked");
    let look = |place: &mut distributary::downstream::Seats| {
        place.poll_bells(&mut Context::from_waker(&waker), |_, _| {});
        place.settle(&stage.scopes, &session.server, stage.now);
    };
    look(place);
    for server in [1, 2] {
        assert!(stage.view(server).is_some(), "server {server} is asked");
        // The session's task runs as often as it is woken, and then waits.
        while calls.0.swap(0, Ordering::Relaxed) > 0 {
            look(place);
        }
        stage.stands(server, if server == 1 { Failing } else { Up });
        assert!(
            calls.0.load(Ordering::Relaxed) > 0,
            "what becomes of server {server} is heard"
        );
        look(place);
    }
    assert_eq!(session.reads(), Some(2));
}

/// G-08: a session that never left its server releases the other servers when its server answers again, even if nothing else
/// changed.
#[test]
fn who_stayed_lets_the_others_go() {
    let stage = Stage::new(&[0], &[0, 1], true);
    let name = "xdstp://a/envoy.config.endpoint.v3.ClusterLoadAssignment/x";
    let mut session = stage.session(1);
    session.asks(&stage, EDS, &[name]);
    stage.stands(0, Up);
    stage.says(0, EDS, &[(name, Some("1"))]);
    session.hears(&stage);
    stage.stands(0, Failing);
    session.looks(&stage);
    assert_eq!(stage.view(1).map(|view| view.demand().seats()), Some(1));
    let calls = Arc::new(Calls::default());
    let waker = Waker::from(calls.clone());
    let place = session.place.as_mut().expect("it has asked");
    place.poll_bells(&mut Context::from_waker(&waker), |_, _| {});
    calls.0.store(0, Ordering::Relaxed);
    stage.stands(0, Up);
    assert!(calls.0.load(Ordering::Relaxed) > 0, "it is told");
    session.looks(&stage);
    assert_eq!(stage.view(1).map(|view| view.demand().seats()), Some(0));
}

/// G-08, G-12: a server that came back, and was lost again before any session returned to it, begins without old content again:
/// if its old content were declared to it, it might send nothing.
#[test]
fn as_long_as_another_one_stands_in_every_stream_begins_clean() {
    let stage = Stage::new(&[0, 1], &[], false);
    let mut session = stage.session(1);
    session.asks(&stage, EDS, &["x", "y"]);
    stage.stands(0, Failing);
    session.hears(&stage);
    stage.stands(1, Up);
    stage.says(1, EDS, &[("x", Some("1")), ("y", Some("1"))]);
    session.hears(&stage);
    let first = stage.view(0).expect("it is watched");
    assert!(first.mailbox().take_superseded());
    stage.stands(0, Up);
    stage.says(0, EDS, &[("x", Some("1"))]);
    session.hears(&stage);
    assert_eq!(session.reads(), Some(1), "it lacks something there");
    assert!(!first.mailbox().take_superseded(), "its stream is open");
    stage.stands(0, Trying);
    session.hears(&stage);
    assert!(first.mailbox().take_superseded());
}
