// SPDX-License-Identifier: Apache-2.0
//! One view for each class, a bound for their number, and no view without clients.

use std::collections::BTreeSet;

use cache::{NoPlace, Routes, Scopes};
use classes::{Class, Classes, Features, Marks, Node, Passes, Path, Pattern, Piece, Rule, Selector};
use proto::envoy::config::core::v3 as core;

use super::*;

pub(super) fn by_cluster(limit: usize) -> Scopes {
    Scopes::new(clusters(), Routes::default(), settings(), limit)
}

/// A class for each cluster.
fn clusters() -> Classes {
    Classes::new(vec![Rule {
        key: vec![Selector::Cluster],
        ..Rule::default()
    }])
}

/// A client that these rules have put into a class.
pub(super) fn divided(classes: &Classes, node: Node) -> Arc<Node> {
    let class = Arc::new(classes.class(&node, &[]));
    Arc::new(Node { class, ..node })
}

/// A client of this cluster comes.
fn enter(scopes: &Scopes, cluster: &str) -> Result<Seat, NoPlace> {
    scopes.enter(&node(cluster), None, 0, &Arc::default())
}

pub(super) fn node(cluster: &str) -> Arc<Node> {
    let node = Node {
        cluster: cluster.into(),
        ..Node::default()
    };
    divided(&clusters(), node)
}

/// K-03: each class has its own view, and so its own stream upstream; clients of one class share it.
#[test]
fn one_view_for_a_class_under_races() {
    let scopes = by_cluster(0);
    let gate = std::sync::Barrier::new(8);
    let seats: Vec<_> = std::thread::scope(|scope| {
        let enter = |n: usize| {
            let (scopes, gate) = (&scopes, &gate);
            scope.spawn(move || {
                gate.wait();
                enter(scopes, ["a", "b"][n % 2]).ok()
            })
        };
        let threads: Vec<_> = (0..8).map(enter).collect();
        threads
            .into_iter()
            .filter_map(|thread| thread.join().ok().flatten())
            .collect()
    });
    assert_eq!(seats.len(), 8);
    assert_eq!(scopes.take_created().len(), 2);
    assert_eq!(scopes.take_created().len(), 0);
    let keys: BTreeSet<_> = scopes
        .all()
        .iter()
        .map(|view| (view.class().key.to_vec(), view.demand().seats()))
        .collect();
    assert_eq!(keys, [(vec!["a".to_owned()], 4), (vec!["b".to_owned()], 4)].into());
}

/// Clients choose the values that divide them, so the number of views has a bound; unused views give way.
#[test]
fn views_are_bounded_and_the_error_names_the_key() {
    let scopes = by_cluster(2);
    let a = enter(&scopes, "a").expect("there is room");
    let b = enter(&scopes, "b").expect("there is room");
    let refused = enter(&scopes, "c").err().expect("there is no room");
    assert_eq!(
        refused.to_string(),
        "limits.views of 2 is reached; raise it if so many are intended"
    );
    assert_eq!(enter(&scopes, "a").expect("there is one").view().demand().seats(), 2);
    let view = b.view().clone();
    assert_eq!(scopes.take_created().len(), 2);
    drop(b);
    let c = enter(&scopes, "c").expect("b is nobody's");
    assert!(view.mailbox().is_closed() && !a.view().mailbox().is_closed() && !c.view().mailbox().is_closed());
    assert_eq!((scopes.all().len(), scopes.take_created().len()), (2, 1));
}

#[test]
fn a_view_without_clients_ends_when_its_time_is_over() {
    let (scopes, mut now) = (by_cluster(2), start());
    let seat = enter(&scopes, "a").expect("there is room");
    assert_eq!(seat.want(&want(&eds(), "a", true)), Ok(()));
    let view = seat.view().clone();
    let _ = view.take_wants(now);
    drop(seat);
    let _ = view.take_wants(now);
    for _ in 0..10 {
        now += LINGER;
        scopes.sweep(now);
        assert!(!view.mailbox().is_closed(), "its writer has not ended what lingers");
    }
    assert_eq!(asked(&view.take_wants(now)), ["-eds a"]);
    scopes.sweep(now);
    let back = enter(&scopes, "a").expect("it is still there");
    assert!(Arc::ptr_eq(back.view(), &view));
    now += LINGER;
    scopes.sweep(now);
    drop(back);
    scopes.sweep(now);
    assert!(!view.mailbox().is_closed());
    scopes.sweep(now + LINGER);
    assert!(view.mailbox().is_closed() && scopes.all().is_empty());
    let again = enter(&scopes, "a").expect("there is room");
    assert!(!Arc::ptr_eq(again.view(), &view));
}

/// K-25: the node of a view names all relays that its clients came through, whenever they came.
#[test]
fn a_view_knows_the_relays_before_it() {
    let (scopes, mut now) = (by_cluster(0), start());
    let through = |relays: &[&str]| {
        let relays: Vec<String> = relays.iter().map(|relay| (*relay).to_owned()).collect();
        let node = Node {
            marks: Marks::of(&relays).map(|marks| Arc::new(marks.from(Some("ip:127.0.0.1")))),
            ..Node::default()
        };
        divided(&clusters(), node)
    };
    let enter = |relays: &[&str]| scopes.enter(&through(relays), None, 0, &Arc::default());
    let first = enter(&["edge", "zone"]).unwrap();
    let second = enter(&[]).unwrap();
    let view = second.view().clone();
    let told = |now: &mut Instant| {
        *now += Duration::from_secs(1);
        view.mailbox().take_relays(*now)
    };
    assert_eq!(told(&mut now).unwrap(), ["edge", "zone"]);
    assert_eq!(told(&mut now), None);
    let third = enter(&["other", "zone"]).unwrap();
    assert_eq!(told(&mut now).unwrap(), ["other", "edge", "zone"]);
    drop(first);
    assert_eq!(told(&mut now).unwrap(), ["other", "zone"]);
    // The server refuses what has come through one of them: its sessions end, and it is refused, with that mark alone.
    view.end_loop("other", now);
    assert!(matches!(enter(&["other"]), Err(NoPlace::Loop(mark)) if &*mark == "other"));
    assert!(enter(&["edge"]).is_ok());
    assert_eq!(told(&mut now), Some(Vec::new()), "there is nobody left");
    assert_eq!(told(&mut now), None);
    scopes.sweep(now + Duration::from_secs(600));
    assert!(enter(&["other"]).is_ok());
    drop(third);
}

/// G-15, G-17: for a server of several authorities it is known how many sessions read it for each authority.
#[test]
fn readers_are_counted_for_each_authority() {
    let scopes = by_cluster(0);
    let of = |authority: &str| Some(Arc::from(authority));
    let (a, b): (Option<Arc<str>>, _) = (of("a"), of("b"));
    let seats =
        [None, a.as_ref(), a.as_ref(), b.as_ref()].map(|of| scopes.enter(&node("x"), of, 0, &Arc::default()).unwrap());
    for seat in &seats {
        assert_eq!(seat.want(&want(&TypeUrl::new("a.B"), "a", true)), Ok(()));
    }
    seats[2].watch(true);
    let count = |authority: Option<&str>| {
        let views = scopes.all();
        let counts = views.iter().map(|view| view.demand().readers_of(authority));
        counts.fold((0, 0), |(a, b), (reading, watching)| (a + reading, b + watching))
    };
    assert_eq!(
        [None, Some("a"), Some("b"), Some("c")].map(count),
        [(1, 0), (1, 1), (1, 0), (0, 0)]
    );
}

/// K-02: that different clients share a view is logged once, with the key that would separate them.
#[test]
fn sharing_is_said_once() {
    let log = Log::default();
    tracing::subscriber::with_default(log.clone(), || {
        let scopes = Scopes::new(Classes::default(), Routes::default(), settings(), 0);
        let seats = ["a", "a", "b", "c"].map(|cluster| {
            let node = Node {
                cluster: cluster.into(),
                ..Node::default()
            };
            scopes
                .enter(&Arc::new(node), None, 0, &Arc::default())
                .map_err(|_| cluster)
        });
        assert!(seats.iter().all(Result::is_ok));
    });
    let lines = log.lines();
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(
        lines[0].ends_with("write `classes: [{ key: [cluster] }]`"),
        "{}",
        lines[0]
    );
}

/// K-02: the advice is the whole entry, with the rule's other parts and a node id that tells the new views apart (K-28).
#[test]
fn the_advice_is_the_whole_rule() {
    let label = Selector::Metadata(Path::new(["LABELS", "app.io/name"]));
    let template = vec![Piece::Text("r{".to_owned()), Piece::Key(0)];
    let rule = Rule {
        matches: vec![
            (Selector::Id, Pattern::read("o'edge-*").unwrap()),
            (Selector::Zone, Pattern::of("a")),
        ],
        key: vec![Selector::Cluster],
        id: Some(template),
        cluster: None,
        passes: Passes::Nothing,
        credentials: None,
    };
    let classes = Classes::new(vec![rule.clone()]);
    let class = |rule: Option<&Rule>| Class {
        rule: rule.cloned().map(Arc::new),
        key: Arc::new([String::new()]),
        endpoint_collections: false,
    };
    assert_eq!(
        classes.advice(&class(Some(&rule)), &label),
        "`{ match: { id: 'o''edge-*', locality.zone: a }, key: [cluster, 'metadata.LABELS.\"app.io/name\"'], \
         node: { id: 'r{{{cluster}/{metadata.LABELS.\"app.io/name\"}' } }` as `classes[0]`"
    );
    assert_eq!(
        classes.advice(&class(None), &Selector::Cluster),
        "`{ key: [cluster] }` as the last of `classes`"
    );
}

/// K-28: the second of two views of one server with one node id is logged together with the first, whatever else differs; views
/// that differ only in what their clients read are exempt.
#[test]
fn views_with_one_node_id_are_found() {
    let template = vec![Piece::Key(0), Piece::Text("/".to_owned()), Piece::Key(1)];
    let tenant = Selector::Metadata(Path::new(["TENANT"]));
    let rule = Rule {
        key: vec![Selector::Cluster, tenant],
        id: Some(template),
        ..Rule::default()
    };
    let classes = Classes::new(vec![rule]);
    let scopes = Scopes::new(classes.clone(), Routes::default(), settings(), 0);
    let client = |cluster: &str, tenant: &str, endpoint_collections| {
        let node = Node {
            cluster: cluster.into(),
            metadata: [("TENANT".to_owned(), tenant.to_owned())].into(),
            features: Features {
                endpoint_collections,
                ..Features::default()
            },
            ..Node::default()
        };
        divided(&classes, node)
    };
    let relay = core::Node {
        id: "relay".to_owned(),
        ..Default::default()
    };
    let begin = |node: &Arc<Node>, authority: Option<&Arc<str>>, server| {
        let seat = scopes.enter(node, authority, server, &Arc::default()).unwrap();
        let found = scopes
            .take_created()
            .iter()
            .map(|view| scopes.introduce(view, &relay))
            .next()
            .unwrap();
        (seat, found.0.id, found.1.map(|class| class.key))
    };
    let (_one, id, twin) = begin(&client("a/b", "c", false), None, 0);
    assert_eq!((id.as_str(), twin), ("a/b/c", None));
    let (two, id, twin) = begin(&client("a", "b/c", false), None, 0);
    assert_eq!(id, "a/b/c");
    assert_eq!(*twin.unwrap(), ["a/b", "c"]);
    let (_three, _, twin) = begin(&client("x", "y", false), None, 0);
    assert_eq!(twin, None);
    let (_four, id, twin) = begin(&client("x", "y", true), None, 0);
    assert_eq!(id, "x/y", "they differ in what they read alone");
    assert_eq!(twin, None, "they differ in what they read alone");
    let (_five, id, twin) = begin(&client("a", "b/c", false), None, 1);
    assert_eq!((id.as_str(), twin), ("a/b/c", None), "another server");
    let (_six, id, twin) = begin(&client("a", "b/c", false), Some(&Arc::from("authority")), 0);
    assert_eq!((id.as_str(), twin), ("relay", None));
    drop(two);
}

/// Keeps the messages that were logged.
#[derive(Clone, Default)]
pub(super) struct Log(Arc<std::sync::Mutex<Vec<String>>>);

impl Log {
    pub(super) fn lines(&self) -> Vec<String> {
        self.0.lock().map(|lines| lines.clone()).unwrap_or_default()
    }
}

impl tracing::Subscriber for Log {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        struct Message(String);
        impl tracing::field::Visit for Message {
            fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn std::fmt::Debug) {
                if field.name() == "message" {
                    self.0 = format!("{value:?}");
                }
            }
        }
        let mut message = Message(String::new());
        event.record(&mut message);
        if let Ok(mut lines) = self.0.lock() {
            lines.push(message.0);
        }
    }

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}

/// What divides clients is theirs to choose, and each view has copies of it: a long one opens no view.
#[test]
fn long_keys_open_no_view() {
    let scopes = by_cluster(0);
    let enter = |bytes| enter(&scopes, &"x".repeat(bytes));
    assert!(enter(4096).is_ok());
    let error = enter(4097).err().expect("it is too long").to_string();
    assert!(error.contains("4097") && error.contains("4096"), "{error}");
    assert_eq!(scopes.all().len(), 1);
}

/// A view takes the memory that is left; one that is there already takes none.
#[test]
fn new_views_need_memory() {
    let scopes = by_cluster(0);
    let enter = |cluster| enter(&scopes, cluster);
    scopes.leave_room(300 * 1024, 1 << 20);
    let one = enter("one");
    assert!(one.is_ok() && enter("one").is_ok());
    let full = enter("two").err().expect("there is no room");
    assert!(full.to_string().contains("limits.memory of 1048576"), "{full}");
    assert_eq!(scopes.all().len(), 1);
    scopes.leave_room(0, 0);
    assert!(enter("two").is_ok(), "there is no limit");
}

/// Names that nobody had asked for take the memory that is left; others do not.
#[test]
fn new_names_need_memory() {
    let scopes = by_cluster(0);
    let seat = |cluster| enter(&scopes, cluster).expect("there is room");
    let want = |name: &str| Want {
        type_url: TypeUrl::new("type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"),
        target: Target::Name(Name::from(name)),
        wanted: true,
        written: None,
    };
    let (one, other) = (seat("one"), seat("other"));
    scopes.leave_room(2 * 1024, 1 << 20);
    assert!(one.want(&want("a")).is_ok() && other.want(&want("a")).is_ok());
    let full = one.want(&want("b")).expect_err("there is no room");
    assert_eq!((full.limit, full.value), ("memory", 1 << 20));
    assert!(seat("one").want(&want("a")).is_ok(), "it is asked for already");
    scopes.leave_room(1024, 1 << 20);
    assert!(one.want(&want("b")).is_ok());
    scopes.leave_room(0, 0);
    assert!(one.want(&want("c")).is_ok(), "there is no limit");

    // Who has many names leaves room for newcomers.
    let unbounded = ViewSettings {
        names_per_view: 0,
        ..settings()
    };
    scopes.set(unbounded, 0);
    for name in 0..4096 {
        assert!(one.want(&want(&format!("many-{name}"))).is_ok());
    }
    scopes.leave_room(300_000, 1 << 20);
    let full = one.want(&want("d")).expect_err("there is no room for more");
    assert_eq!((full.limit, full.value), ("memory", 1 << 20));
    assert!(seat("one").want(&want("d")).is_ok());
    scopes.leave_room(400_000, 1 << 20);
    assert!(one.want(&want("e")).is_ok());
}

/// B-34: versions leave a part of the room to others, and what is not kept of them is free again. What is still being read counts beside
/// the memory that is seen meanwhile.
#[test]
fn versions_need_memory() {
    let scopes = by_cluster(0);
    scopes.leave_room(700_000, 1 << 20);
    let mut room = scopes.bring(100).expect("there is room");
    assert_eq!(scopes.bring(700).map(drop), Err(1 << 20));
    room.keep(10);
    drop(room);
    let room = scopes.bring(700).expect("there is room again");
    scopes.leave_room(700_000, 1 << 20);
    assert!(scopes.bring(100).is_err(), "the others are not in memory yet");
    drop(room);
    assert!(scopes.bring(700).is_ok());
    assert!(scopes.bring(0).is_ok());
    scopes.leave_room(0, 0);
    assert!(scopes.bring(usize::MAX >> 20).is_ok(), "there is no limit");
}

/// Bytes are shared between the servers of one class, and between the classes of one server.
#[test]
fn views_with_the_same_content_are_found() {
    let scopes = Arc::new(by_cluster(0));
    let enter = |cluster: &str, server| scopes.enter(&node(cluster), None, server, &Arc::default()).unwrap();
    let seats = [enter("a", 0), enter("a", 1), enter("b", 1), enter("c", 2)];
    let say =
        |seat: &Seat, content: &str| drop(seat.view().publish(&[named(&eds(), vec![put(&eds(), "it", content)])]));
    seats
        .iter()
        .zip(["a0", "a1", "b1", "c2"])
        .for_each(|(seat, content)| say(seat, content));
    let found = |seat: &Seat| {
        let cuts = scopes.twins(seat.view()).cuts();
        let bodies = cuts
            .iter()
            .map(|cut| cut.slot(&eds()).unwrap().resource(&"it".into()).unwrap().body());
        bodies
            .map(|body| String::from_utf8_lossy(&body).into_owned())
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_eq!(seats.each_ref().map(found), ["a1", "a0 b1", "a1", ""]);
}
