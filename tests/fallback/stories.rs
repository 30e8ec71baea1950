// SPDX-License-Identifier: Apache-2.0
//! Stories of sessions whose servers fail and return.

use std::time::Duration;

use distributary::protocol::Code;
use distributary::xds::ServerState::{Failing, Up};

use crate::stage::{EDS, Stage, told};

/// L-19, G-03, G-06, G-09, G-11, G-17: only the session that lacks something moves. It asks the other server for everything, gets
/// nothing twice, and loses nothing until the first server itself removes it.
#[test]
fn only_who_lacks_something_moves_and_nothing_goes_by_moving() {
    let mut stage = Stage::new(&[0, 1], &[], false);
    let (mut content, mut lacking) = (stage.session(1), stage.session(2));
    for session in [&mut content, &mut lacking] {
        session.asks(&stage, EDS, &["x"]);
    }
    stage.stands(0, Up);
    stage.says(0, EDS, &[("x", Some("1"))]);
    for session in [&mut content, &mut lacking] {
        assert_eq!(session.hears(&stage), told(&[("x", Some("1"))]));
    }
    stage.stands(0, Failing);
    assert!(content.hears(&stage).is_empty() && lacking.hears(&stage).is_empty());
    assert!(stage.view(1).is_none(), "nobody needs the second server");

    // G-05: a new name during the failure leads to the second server at once.
    lacking.asks(&stage, EDS, &["y"]);
    assert!(lacking.hears(&stage).is_empty());
    let second = stage.view(1).expect("it is asked");
    let asked = second.take_wants(stage.now);
    assert_eq!(asked.len(), 2, "everything is asked for there: {asked:?}");
    stage.stands(1, Up);
    stage.says(1, EDS, &[("y", Some("2"))]);
    assert!(lacking.hears(&stage).is_empty(), "the other view is not complete yet");
    stage.says(1, EDS, &[("x", Some("1"))]);
    assert_eq!(
        lacking.hears(&stage),
        told(&[("y", Some("2"))]),
        "what is equal is not sent"
    );
    assert_eq!((content.reads(), lacking.reads()), (Some(0), Some(1)));
    assert!(content.hears(&stage).is_empty());
    // G-07: the first server is still asked for everything that the session which left wants.
    assert_eq!(stage.view(0).expect("it is kept").demand().readers(), (1, 1));
    assert_eq!(stage.view(0).expect("it is kept").lacking().len(), 1, "y");

    // The second server's content is for its readers only.
    stage.says(1, EDS, &[("x", Some("1b"))]);
    assert_eq!(lacking.hears(&stage), told(&[("x", Some("1b"))]));
    assert!(content.hears(&stage).is_empty());

    // G-08: the first server answers again, at first for one name.
    stage.stands(0, Up);
    stage.says(0, EDS, &[("x", Some("1"))]);
    assert!(lacking.hears(&stage).is_empty(), "it does not hold everything yet");
    stage.now += Duration::from_secs(1);
    assert_eq!(
        lacking.hears(&stage),
        told(&[("x", Some("1"))]),
        "the time is over; y stays"
    );
    assert_eq!(lacking.reads(), Some(0));
    stage.says(1, EDS, &[("y", Some("late"))]);
    assert!(lacking.hears(&stage).is_empty(), "late words of the second server");
    stage.says(0, EDS, &[("y", None)]);
    assert_eq!(lacking.hears(&stage), told(&[("y", None)]), "the first server says so");
}

/// L-20, G-12: a server for which another one stood in begins without old content; if no session moved, nothing is forgotten.
#[test]
fn who_was_stood_in_for_begins_clean() {
    let stage = Stage::new(&[0, 1], &[], false);
    let mut session = stage.session(1);
    session.asks(&stage, EDS, &["x"]);
    stage.stands(0, Up);
    stage.says(0, EDS, &[("x", Some("1"))]);
    session.hears(&stage);
    stage.stands(0, Failing);
    session.hears(&stage);
    let first = stage.view(0).expect("it is there");
    assert!(
        !first.mailbox().take_superseded(),
        "everything is there; nobody stood in"
    );
    session.asks(&stage, EDS, &["y"]);
    session.hears(&stage);
    stage.stands(1, Up);
    stage.says(1, EDS, &[("x", Some("1")), ("y", Some("2"))]);
    session.hears(&stage);
    assert!(first.mailbox().take_superseded());
}

/// G-17: a move takes a second at most, away and back, although each server is silent about a name that only the other one has.
/// It takes nothing away.
#[test]
fn a_move_takes_a_second_each_way() {
    let mut stage = Stage::new(&[0, 1], &[], false);
    let mut session = stage.session(1);
    session.asks(&stage, EDS, &["x", "y"]);
    stage.stands(0, Up);
    stage.says(0, EDS, &[("x", Some("1"))]);
    assert_eq!(session.hears(&stage), told(&[("x", Some("1"))]));
    let almost = Duration::from_millis(999);
    for (from, to, heard) in [(0, 1, [("y", Some("2"))]), (1, 0, [("x", Some("1"))])] {
        if from == 0 {
            stage.stands(0, Failing);
            assert!(session.hears(&stage).is_empty());
        }
        stage.stands(to, Up);
        stage.says(to, EDS, &heard);
        assert!(session.hears(&stage).is_empty() && session.reads() == Some(from));
        stage.now += almost;
        assert!(session.hears(&stage).is_empty() && session.reads() == Some(from));
        stage.now += Duration::from_millis(1);
        let news = if to == 1 { told(&heard) } else { told(&[]) };
        assert_eq!(session.hears(&stage), news);
        assert_eq!(session.reads(), Some(to));
    }
}

/// F-11, F-13: each configured authority is read from its own servers, and any other together with the names of old style. F-02:
/// a text that is no name of the type is asked for under its authority as well.
#[test]
fn authorities_are_read_apart() {
    let stage = Stage::new(&[0], &[1], false);
    let mut session = stage.session(1);
    let ours = "xdstp://a/envoy.config.endpoint.v3.ClusterLoadAssignment/x";
    let unnamed = "xdstp://b/envoy.config.endpoint.v3.ClusterLoadAssignment/x";
    let text = "xdstp://b/envoy.config.cluster.v3.Cluster/x";
    session.asks(&stage, EDS, &["x", ours, unnamed, text]);
    assert!(session.hears(&stage).is_empty());
    let wanted = |server: usize| stage.view(server).map(|view| view.take_wants(stage.now).len());
    assert_eq!((wanted(0), wanted(1)), (Some(3), Some(1)));
    stage.stands(0, Up);
    stage.stands(1, Up);
    stage.says(0, EDS, &[(text, None)]);
    assert_eq!(session.hears(&stage), told(&[(text, None)]));
    // Answers that a server was not asked for are ignored.
    stage.says(0, EDS, &[("x", Some("plain")), (ours, Some("forged"))]);
    assert_eq!(session.hears(&stage), told(&[("x", Some("plain"))]));
    stage.says(0, EDS, &[(unnamed, Some("new style"))]);
    assert_eq!(session.hears(&stage), told(&[(unnamed, Some("new style"))]));
    stage.says(
        1,
        EDS,
        &[(ours, Some("theirs")), ("x", Some("forged")), (unnamed, Some("forged"))],
    );
    assert_eq!(session.hears(&stage), told(&[(ours, Some("theirs"))]));
    // The loss of one server does not affect the other.
    stage.stands(1, Failing);
    stage.says(0, EDS, &[("x", Some("plain 2"))]);
    assert_eq!(session.hears(&stage), told(&[("x", Some("plain 2"))]));
}

/// G-18: a gRPC client is sent elsewhere also if it got something, but only when every server is lost: while another one may still
/// answer, the session waits for that. Each authority has its own servers.
#[test]
fn grpc_is_sent_elsewhere_when_every_server_is_lost() {
    for name in ["y", "xdstp://a/envoy.config.endpoint.v3.ClusterLoadAssignment/y"] {
        let mut stage = Stage::new(&[0, 1], &[0, 1], false);
        let session = |stage: &Stage, prefix| {
            let mut session = stage.session(prefix);
            session.agent = "gRPC Go";
            session.asks(stage, EDS, &["x"]);
            session
        };
        let mut first = session(&stage, 1);
        stage.stands(0, Up);
        stage.says(0, EDS, &[("x", Some("1"))]);
        assert_eq!(first.hears(&stage), told(&[("x", Some("1"))]));
        first.asks(&stage, EDS, &[name]);
        stage.now += Duration::from_secs(9);
        stage.stands(0, Failing);
        first.hears(&stage);
        assert!(first.ended.is_none(), "the second server is being tried");
        stage.stands(1, Failing);
        assert!(first.wakes(&stage).is_empty());
        assert_eq!(first.ended.map(|end| end.code), Some(Code::Unavailable), "{name}");

        // It comes back, and all its requests are read before anything is sent.
        let mut second = session(&stage, 2);
        assert!(second.hears(&stage).is_empty() && second.ended.is_none());
        stage.now += Duration::from_millis(40);
        second.asks(&stage, EDS, &[name]);
        assert!(second.hears(&stage).is_empty() && second.ended.is_none());
        stage.now += Duration::from_millis(50);
        assert!(second.hears(&stage).is_empty());
        assert_eq!(second.ended.map(|end| end.code), Some(Code::Unavailable), "{name}");

        // Another client, which lacks nothing, is answered.
        let mut third = session(&stage, 3);
        assert!(third.hears(&stage).is_empty());
        stage.now += Duration::from_millis(50);
        assert_eq!(third.hears(&stage), told(&[("x", Some("1"))]));
        assert!(third.ended.is_none());
    }
}

/// G-18: a gRPC session that waits is woken when its only server is lost, and is sent elsewhere within a second.
#[test]
fn the_loss_of_the_only_server_is_heard() {
    let mut stage = Stage::new(&[0], &[], false);
    let mut session = stage.session(1);
    session.agent = "gRPC Go";
    session.asks(&stage, EDS, &["x"]);
    session.hears(&stage);
    stage.stands(0, Failing);
    assert!(session.wakes(&stage).is_empty());
    let due = session.server.poll_timeout().expect("it is looked after");
    assert!(due <= stage.now + Duration::from_millis(50));
    stage.now = due;
    session.hears(&stage);
    stage.now = session.server.poll_timeout().expect("it is looked after");
    assert!(session.ended.is_none());
    session.hears(&stage);
    assert_eq!(session.ended.map(|end| end.code), Some(Code::Unavailable));
    assert!(stage.now - due < Duration::from_secs(1));
}

/// F-13: names under a configured authority are in one view for clients of all classes. Names of old style are not (K-02), nor
/// are those under any other authority.
#[test]
fn names_of_new_style_are_shared_by_all_classes() {
    let stage = Stage::by_cluster(&[0], &[0]);
    let name = "xdstp://a/envoy.config.endpoint.v3.ClusterLoadAssignment/x";
    let mut sessions = [stage.session_of(1, "blue"), stage.session_of(2, "green")];
    for session in &mut sessions {
        let unnamed = "xdstp://b/envoy.config.endpoint.v3.ClusterLoadAssignment/x";
        session.asks(&stage, EDS, &[name, "x", unnamed]);
    }
    let all = stage.scopes.all();
    let shared: Vec<_> = all.iter().filter(|view| view.class().key.is_empty()).collect();
    assert_eq!(
        (all.len(), shared.len()),
        (3, 1),
        "one for each cluster, and one for both"
    );
    assert_eq!(shared[0].demand().seats(), 2);
    assert_eq!(shared[0].take_wants(stage.now).len(), 1, "it is asked for once");
    let own = all.iter().filter(|view| !view.class().key.is_empty());
    let own: Vec<usize> = own.map(|view| view.take_wants(stage.now).len()).collect();
    assert_eq!(own, [2, 2], "each class asks for itself");
}

/// G-06: a session is woken by what a server sends right after the session has taken a seat at its view.
#[test]
fn the_next_server_wakes_who_waits_for_it() {
    for (all, name) in [
        (false, "x"),
        (true, "xdstp://a/envoy.config.endpoint.v3.ClusterLoadAssignment/x"),
    ] {
        let stage = Stage::new(&[0, 1], &[0, 1], all);
        let mut session = stage.session(1);
        session.asks(&stage, EDS, &[name]);
        assert!(session.hears(&stage).is_empty());
        stage.stands(0, Failing);
        assert!(session.wakes(&stage).is_empty());
        stage.stands(1, Up);
        stage.says(1, EDS, &[(name, Some("1"))]);
        assert_eq!(session.wakes(&stage), told(&[(name, Some("1"))]), "{name}");
    }
}
