//! What clients of one kind read while a content is condemned for it.

use classes::{ClientKind, Node, UserAgent};
use xds::{Condemned, Cut, Objection, Rights, Sight, Version, Viewer};

use super::*;

fn node(version: &str) -> Node {
    Node {
        user_agent: Arc::new(UserAgent {
            name: "envoy".into(),
            version: version.into(),
        }),
        ..Node::default()
    }
}

fn condemned(version: Version, stands_in: &Arc<Resource>, kind: Option<&Node>) -> Arc<Condemned> {
    Arc::new(Condemned {
        type_url: cds(),
        version,
        kind: kind.map(ClientKind::of),
        stands_in: stands_in.clone(),
        since: start(),
        clients: 2,
        of: 3,
        objection: Arc::new(Objection::new(13, "no", start())),
    })
}

fn cds() -> TypeUrl {
    TypeUrl::new("type.googleapis.com/envoy.config.cluster.v3.Cluster")
}

fn content(name: &str, body: &str) -> Arc<Resource> {
    let parts = ResourceParts {
        type_url: &cds(),
        name: name.into(),
        aliases: Vec::new(),
        passed_on: &[],
        body: body.as_bytes(),
        endpoints: None,
        received: start(),
    };
    Arc::new(Resource::new(parts, 0))
}

fn publish(view: &View, contents: &[&Arc<Resource>]) {
    for wildcard in [true, false] {
        let updates = contents.iter().map(|one| Update::Put(Arc::clone(one), None));
        drop(view.publish(&[Changes {
            type_url: cds(),
            wildcard,
            updates: updates.collect(),
            complete: wildcard.then_some(true),
            answered: Some(true),
            phase: Phase::Steady,
        }]));
    }
}

fn never(_: &Condemned) -> bool {
    false
}

fn read(cut: &Cut, name: &str) -> Vec<Version> {
    let halves = cut.slot(&cds()).into_iter().flat_map(|slot| slot.halves());
    halves
        .filter_map(|state| Some(state.resource(&name.into())?.version()))
        .collect()
}

/// Clients of a kind share one cut, in which only the condemned content differs; all others read the view's own.
#[test]
fn a_kind_shares_one_cut() {
    let view = View::new(Class::default(), settings());
    let seats: Vec<Seat> = (0..4).map(|_| view.enter()).collect();
    let (good, bad, other) = (content("a", "good"), content("a", "bad"), content("b", "b"));
    publish(&view, &[&bad, &other]);
    let (old, new) = (node("1"), node("2"));
    drop(view.publish_condemned(vec![condemned(bad.version(), &good, Some(&old))], Vec::new(), start()));
    let cuts: Vec<Arc<Cut>> = seats.iter().take(2).map(|seat| seat.cut(&old, never)).collect();
    assert!(Arc::ptr_eq(&cuts[0], &cuts[1]));
    assert_eq!(read(&cuts[0], "a"), [good.version(); 2]);
    assert_eq!(read(&cuts[0], "b"), [other.version(); 2]);
    assert!(Arc::ptr_eq(&seats[2].cut(&new, never), &view.cut()));
    // Who holds it keeps it.
    assert!(Arc::ptr_eq(
        &seats[3].cut(&old, |one| one.version == bad.version()),
        &view.cut()
    ));
    // A change of another type makes no new states, and one of another name no other stand-in.
    let before = cuts[0].slot(&cds()).unwrap().named.clone();
    let eds = TypeUrl::new("type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment");
    drop(view.publish(&[Changes {
        type_url: eds,
        wildcard: false,
        updates: vec![Update::Absent("x".into(), Reason::Said)],
        complete: None,
        answered: Some(true),
        phase: Phase::Steady,
    }]));
    assert!(Arc::ptr_eq(
        &seats[0].cut(&old, never).slot(&cds()).unwrap().named,
        &before
    ));
    publish(&view, &[&content("b", "c")]);
    assert_eq!(read(&seats[0].cut(&old, never), "a"), [good.version(); 2]);
    // Other content is not condemned, though nobody has said so yet; then a pointer is enough.
    publish(&view, &[&content("a", "better")]);
    assert!(Arc::ptr_eq(&seats[0].cut(&old, never), &view.cut()));
    drop(view.publish_condemned(Vec::new(), Vec::new(), start()));
    assert!(Arc::ptr_eq(&seats[0].cut(&old, never), &view.cut()));
}

/// S-01: what a client may not have it does not get in any version.
#[test]
fn rules_apply_to_what_stands_in() {
    let view = View::new(Class::default(), settings());
    let seat = view.enter();
    let (good, bad) = (content("a", "good"), content("a", "bad"));
    publish(&view, &[&bad]);
    let node = node("1");
    drop(view.publish_condemned(vec![condemned(bad.version(), &good, Some(&node))], Vec::new(), start()));
    let sight = Sight::from(seat.cut(&node, never));
    let type_url = cds();
    let seen = |viewer: Option<&Viewer>| {
        let seen = sight.type_sight(&type_url);
        let seen = viewer.map_or(seen, |viewer| seen.seen_by(viewer));
        seen.resource(&"a".into()).map(|found| found.version())
    };
    assert_eq!(seen(None), Some(good.version()));
    let viewer = Viewer::new(Some(Rights::none()));
    assert_eq!(seen(Some(&viewer)), None);
}

/// Kinds without a place of their own are one.
#[test]
fn all_other_kinds() {
    let view = View::new(Class::default(), settings());
    let seat = view.enter();
    let (good, bad) = (content("a", "good"), content("a", "bad"));
    publish(&view, &[&bad]);
    let told_apart = vec![ClientKind::of(&node("1"))];
    drop(view.publish_condemned(vec![condemned(bad.version(), &good, None)], told_apart, start()));
    assert_eq!(read(&seat.cut(&node("1"), never), "a"), [bad.version(); 2]);
    assert_eq!(read(&seat.cut(&node("2"), never), "a"), [good.version(); 2]);
}

/// One newcomer of the kind in ten minutes tries what is condemned, until it rejects that or goes.
#[test]
fn a_newcomer_tries_it() {
    let view = View::new(Class::default(), settings());
    let (good, bad) = (content("a", "good"), content("a", "bad"));
    publish(&view, &[&bad]);
    let (now, node) = (start(), node("1"));
    let one = condemned(bad.version(), &good, Some(&node));
    drop(view.publish_condemned(vec![one.clone()], Vec::new(), now));
    let comes = |seconds: u64| {
        let seat = view.enter();
        seat.come(&node, now + Duration::from_secs(seconds));
        let tries = Arc::ptr_eq(&seat.cut(&node, never), &view.cut());
        (seat, tries)
    };
    let tries = [0, 599, 600, 601, 1199].map(|seconds| comes(seconds).1);
    assert_eq!(tries, [false, false, true, false, false]);
    assert!(view.verdicts().take_trial() && !view.verdicts().take_trial());
    // What is published meanwhile does not begin it anew.
    drop(view.publish_condemned(vec![one], Vec::new(), now + Duration::from_secs(1100)));
    let (seat, tries) = comes(1200);
    assert!(tries);
    seat.reject(&cds());
    assert_eq!(read(&seat.cut(&node, never), "a"), [good.version(); 2]);
    assert!(!comes(1201).1);
}
