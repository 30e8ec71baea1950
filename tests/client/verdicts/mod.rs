//! E-26: what is condemned, for whom, and until when.

mod many;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use classes::{Node, UserAgent};
use protocol::{Contents, Earlier, Hearing, Verdicts, Witness};
use xds::{Condemned, Objection, Resource, ResourceParts, Standing, TypeUrl, VerdictEnd, Version};

const CDS: &str = "type.googleapis.com/envoy.config.cluster.v3.Cluster";

/// A view of one name, its machine, and clients.
struct Court {
    now: Instant,
    verdicts: Verdicts,
    current: Arc<Resource>,
    /// By the version that has replaced it.
    earlier: BTreeMap<Version, Earlier>,
}

/// A client: its id, its version, its tenant, and where the current content stands with it.
type Client<'a> = (&'a str, &'a str, u64, Standing);

fn cds() -> TypeUrl {
    TypeUrl::new(CDS)
}

fn content(body: &str, received: Instant) -> Arc<Resource> {
    let parts = ResourceParts {
        type_url: &cds(),
        name: "a".into(),
        aliases: Vec::new(),
        passed_on: &[],
        body: body.as_bytes(),
        endpoints: None,
        received,
    };
    Arc::new(Resource::new(parts, 0))
}

fn node(id: &str, version: &str) -> Node {
    Node {
        id: id.into(),
        user_agent: Arc::new(UserAgent {
            name: "envoy".into(),
            version: version.into(),
        }),
        ..Node::default()
    }
}

impl Court {
    fn new() -> Self {
        #[expect(clippy::disallowed_methods, reason = "any instant will do")]
        let now = Instant::now() + Duration::from_secs(3600);
        let mut verdicts = Verdicts::default();
        verdicts.set(2);
        let mut court = Self {
            now,
            verdicts,
            current: content("1", now),
            earlier: BTreeMap::new(),
        };
        court.says("2");
        court
    }

    /// The control plane says other content.
    fn says(&mut self, body: &str) {
        self.says_after(Duration::from_secs(1), body);
    }

    fn says_after(&mut self, time: Duration, body: &str) {
        self.now += time;
        let new = content(body, self.now);
        let resource = std::mem::replace(&mut self.current, new);
        let until = self.now;
        self.earlier.insert(self.current.version(), Earlier { resource, until });
        self.look();
    }

    fn pass(&mut self, seconds: u64) {
        self.now += Duration::from_secs(seconds);
    }

    fn with<R>(&mut self, act: impl FnOnce(&mut Verdicts, &Contents<'_>, Instant) -> R) -> R {
        let (current, earlier) = (self.current.version(), &self.earlier);
        let contents = Contents {
            is_current: &|_, _, version| version == current,
            earlier: &|_, _, version| earlier.get(&version).cloned(),
        };
        act(&mut self.verdicts, &contents, self.now)
    }

    fn look(&mut self) {
        self.with(|verdicts, contents, now| verdicts.handle_contents(contents, now));
    }

    /// A client rejects something; returns the question, if there is one at once.
    fn rejection(&mut self) -> Option<Hearing> {
        self.verdicts.handle_rejection(&cds(), self.now);
        self.verdicts.poll_question(self.now)
    }

    /// All clients answer. Those of them that reject are asked first.
    fn answer(&mut self, mut hearing: Hearing, served: &Arc<Resource>, clients: &[Client<'_>]) {
        let since = self.now.checked_sub(Duration::from_secs(600)).unwrap();
        let objection = Objection::new(13, "no", self.now);
        for (id, version, _, _) in clients.iter().filter(|client| client.3 == Rejected) {
            hearing.ask(&node(id, version), served.name());
        }
        for (number, (id, version, tenant, standing)) in (0..).zip(clients) {
            let node = node(id, version);
            let witness = Witness {
                node: &node,
                client: number,
                tenant: *tenant,
                since,
                accepts: true,
            };
            let stand = (served.name(), served.version(), *standing, Some(&objection));
            hearing.hear(witness, std::iter::once(stand));
        }
        self.with(|verdicts, contents, now| verdicts.handle_hearing(&hearing, contents, now));
    }

    /// A client rejects something, and these say where the current content stands with them.
    fn hears(&mut self, clients: &[Client<'_>]) {
        let hearing = self.rejection().unwrap();
        let current = self.current.clone();
        self.answer(hearing, &current, clients);
    }

    /// Returns each kind with the body that stands in for it.
    fn served(&self) -> Vec<(String, String)> {
        let condemned = self.verdicts.condemned().iter();
        let body = |one: &Condemned| String::from_utf8(one.stands_in.body().to_vec()).unwrap();
        condemned.map(|one| (one.kind(), body(one))).collect()
    }

    fn ends(&mut self) -> Vec<VerdictEnd> {
        let sentence = self.verdicts.take_condemned().unwrap_or_default();
        sentence.events.into_iter().filter_map(|(_, end)| end).collect()
    }
}

use Standing::{Accepted, NotSent, Rejected, Sent};

fn for_envoy(version: &str, body: &str) -> Vec<(String, String)> {
    vec![(format!("envoy {version}"), body.to_owned())]
}

/// What it is about, what clients say, and for which version of Envoy it is condemned.
type Case<'a> = (&'a str, &'a [Client<'a>], Option<&'a str>);

/// Who has to reject what, and who may not accept it.
#[test]
#[rustfmt::skip]
fn what_is_condemned() {
    let cases: &[Case<'_>] = &[
        ("nobody rejects it", &[("a", "1", 0, Accepted), ("b", "1", 0, Sent)], None),
        ("one of two who may still accept it", &[("a", "1", 0, Rejected), ("b", "1", 0, Sent)], None),
        ("one of two who was not sent it", &[("a", "1", 0, Rejected), ("b", "1", 0, NotSent)], None),
        ("one, and the other has accepted it", &[("a", "1", 0, Rejected), ("b", "1", 0, Accepted)], None),
        ("all of fewer", &[("a", "1", 0, Rejected)], Some("1")),
        ("two of three", &[("a", "1", 0, Rejected), ("b", "1", 0, Rejected), ("c", "1", 0, Sent)], Some("1")),
        ("two, but a third one accepts it", &[("a", "1", 0, Rejected), ("b", "1", 0, Rejected), ("c", "1", 0, Accepted)], None),
        ("two, and another kind accepts it", &[("a", "1", 0, Rejected), ("b", "1", 0, Rejected), ("c", "2", 0, Accepted)], Some("1")),
        ("one of each of two kinds",
            &[("a", "1", 0, Rejected), ("b", "2", 0, Rejected), ("c", "1", 0, Sent), ("d", "2", 0, Sent)], None),
        ("two of one tenant, while others share the view", &[("a", "1", 0, Rejected), ("b", "1", 0, Rejected), ("c", "1", 1, Sent)], None),
        ("one of each of two tenants", &[("a", "1", 0, Rejected), ("b", "1", 1, Rejected), ("c", "1", 1, Sent)], Some("1")),
    ];
    for (what, clients, version) in cases {
        let mut court = Court::new();
        court.hears(clients);
        let served = version.map_or_else(Vec::new, |version| for_envoy(version, "1"));
        assert_eq!(court.served(), served, "{what}");
    }
}

/// The same client on two streams is one.
#[test]
fn a_client_counts_once() {
    let mut court = Court::new();
    let mut hearing = court.rejection().unwrap();
    let name = court.current.name().clone();
    let node = node("a", "1");
    hearing.ask(&node, &name);
    for standing in [Rejected, Rejected, Sent] {
        let witness = Witness {
            node: &node,
            client: 7,
            tenant: 0,
            since: court.now,
            accepts: true,
        };
        hearing.hear(witness, [(&name, court.current.version(), standing, None)].into_iter());
    }
    court.with(|verdicts, contents, now| verdicts.handle_hearing(&hearing, contents, now));
    assert!(court.served().is_empty());
}

const BOTH: [Client<'static>; 2] = [("a", "1", 0, Rejected), ("b", "1", 0, Rejected)];

#[test]
fn what_ends_it() {
    let mut court = Court::new();
    court.hears(&BOTH);
    assert_eq!(court.ends(), []);
    court.says("3");
    assert_eq!((court.ends(), court.served().len()), (vec![VerdictEnd::Changed], 0));

    let mut court = Court::new();
    court.hears(&BOTH);
    court.pass(2);
    court.hears(&[
        ("a", "1", 0, Rejected),
        ("b", "1", 0, Rejected),
        ("c", "1", 0, Accepted),
    ]);
    assert_eq!((court.ends(), court.served().len()), (vec![VerdictEnd::Accepted], 0));

    let mut court = Court::new();
    court.hears(&BOTH);
    assert!(court.verdicts.release(|_| true));
    assert_eq!((court.ends(), court.served().len()), (vec![VerdictEnd::Released], 0));
    // A person is believed until the content changes.
    court.hears(&BOTH);
    assert!(court.served().is_empty());
    court.says("3");
    court.hears(&BOTH);
    assert_eq!(court.served().len(), 1);
    court.verdicts.set(0);
    assert_eq!(court.ends(), [VerdictEnd::Off]);
}

/// Content that the kind has rejected does not stand in for what it rejects next: what stood in for that does.
#[test]
fn what_was_rejected_does_not_stand_in() {
    let mut court = Court::new();
    court.hears(&BOTH);
    court.says("3");
    // The view has forgotten what stood in.
    let first = court
        .earlier
        .keys()
        .copied()
        .find(|version| *version != court.current.version());
    court.earlier.remove(&first.unwrap());
    court.hears(&BOTH);
    assert_eq!(court.served(), for_envoy("1", "1"));
    // If that is rejected as well, nothing is held back.
    let hearing = court.rejection().unwrap();
    let stands_in = court.verdicts.condemned()[0].stands_in.clone();
    court.answer(hearing, &stands_in, &BOTH);
    assert!(court.served().is_empty());
}

/// The same after a restart, and after a long time: whoever has condemned it has forgotten who rejected it.
#[test]
fn what_was_condemned_does_not_stand_in() {
    let mut court = Court::new();
    court.hears(&BOTH);
    for restarts in [false, true] {
        let condemned = Condemned::clone(&court.verdicts.condemned()[0]);
        if restarts {
            court.verdicts = Verdicts::default();
            court.verdicts.set(2);
            court.verdicts.restore(vec![condemned], court.now);
        }
        court.pass(1200);
        // Nobody looks before clients reject the next content.
        let (new, until) = (content(&format!("worse {restarts}"), court.now), court.now);
        let resource = std::mem::replace(&mut court.current, new);
        court.earlier.clear();
        court
            .earlier
            .insert(court.current.version(), Earlier { resource, until });
        court.hears(&BOTH);
        assert_eq!(court.served(), for_envoy("1", "1"), "{restarts}");
    }
}

/// A kind that was not there while the older content was served has not accepted it.
#[test]
fn nobody_of_the_kind_has_accepted_anything() {
    let mut court = Court::new();
    let late = court.now + Duration::from_secs(700);
    court.now = late;
    court.hears(&BOTH);
    assert!(court.served().is_empty());
}

/// The first questions come at once, later ones once a second.
#[test]
fn how_often_clients_are_asked() {
    let mut court = Court::new();
    for _ in 0..4 {
        let hearing = court.rejection().expect("at once");
        assert!(court.rejection().is_none(), "one question at a time");
        let current = court.current.clone();
        court.answer(hearing, &current, &[("a", "1", 0, Rejected), ("b", "1", 0, Sent)]);
    }
    assert!(court.rejection().is_none());
    assert_eq!(court.verdicts.poll_timeout(), Some(court.now + Duration::from_secs(1)));
    court.pass(1);
    assert!(court.verdicts.poll_question(court.now).is_some());
}

/// While somebody may still answer, clients are asked about that every second: questions about what comes next are not late for that.
#[test]
fn the_next_content_is_asked_about_at_once() {
    let three = [BOTH[0], BOTH[1], ("c", "1", 0, Sent)];
    let mut court = Court::new();
    court.hears(&three);
    for body in ["3", "4"] {
        for _ in 0..5 {
            court.pass(1);
            if let Some(hearing) = court.verdicts.poll_question(court.now) {
                let current = court.current.clone();
                court.answer(hearing, &current, &three);
            }
        }
        court.says(body);
        for _ in 0..2 {
            court.hears(&three);
        }
    }
}

/// Those to whom it was sent before answer soon, if there are any; then it is asked again only for a trial, or after a long time.
#[test]
fn what_is_condemned_is_looked_at_again() {
    let three = [BOTH[0], BOTH[1], ("c", "1", 0, Sent)];
    for (clients, expected) in [(&three[..], 9..=11), (&BOTH[..], 0..=0)] {
        let mut court = Court::new();
        court.hears(clients);
        let mut asked = 0;
        for _ in 0..60 {
            court.pass(1);
            if let Some(hearing) = court.verdicts.poll_question(court.now) {
                asked += 1;
                let current = court.current.clone();
                court.answer(hearing, &current, clients);
            }
        }
        assert!(expected.contains(&asked), "{asked}");
    }
    let mut court = Court::new();
    court.hears(&BOTH);
    court.verdicts.handle_trial(court.now);
    court.pass(1);
    assert!(court.verdicts.poll_question(court.now).is_some());
}

/// A machine that has nothing to remember is idle.
#[test]
fn it_comes_to_rest() {
    let mut court = Court::new();
    court.hears(&BOTH);
    court.says("3");
    drop(court.verdicts.take_condemned());
    assert!(!court.verdicts.is_idle());
    for _ in 0..3 {
        court.pass(601);
        court.look();
        if let Some(hearing) = court.verdicts.poll_question(court.now) {
            let current = court.current.clone();
            court.answer(hearing, &current, &[]);
        }
    }
    court.look();
    assert!(court.verdicts.is_idle(), "{:?}", court.verdicts);
}
