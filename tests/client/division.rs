// SPDX-License-Identifier: Apache-2.0
//! K-01, E-27: names that silence a SotW server leave the list of their type.

use std::collections::BTreeSet;

use peers::state::served_by;
use proto::envoy::service::discovery::v3::DiscoveryResponse;
use proto::google::protobuf::Any;
use protocol::{Division, LegKind};
use xds::{Changes, Dialect, Name, Target, TypeUrl, Want};

use crate::errors::error;
use crate::{CDS, EDS, Upstream, ms, sotw};

/// Both streams of a view to one server. The clusters' wildcard and the names of endpoints share the first.
pub(crate) struct Both {
    pub(crate) main: Upstream,
    pub(crate) aside: Upstream,
    division: Division,
    /// What clients want.
    wanted: BTreeSet<String>,
    /// The names in the last response on each stream.
    pub(crate) known: [BTreeSet<String>; 2],
}

/// A server that is silent for a whole list while it lacks one of its names, as java-control-plane.
pub(crate) struct Java<'a>(pub(crate) &'a [&'a str]);

impl Both {
    /// Both streams are open; of the first, clusters and these endpoints are wanted.
    pub(crate) fn new(names: &[&str]) -> Self {
        let mut both = Self {
            main: Upstream::new(Dialect::Sotw),
            aside: Upstream::new(Dialect::Sotw),
            division: Division::default(),
            wanted: BTreeSet::new(),
            known: Default::default(),
        };
        both.main.want(CDS, "*");
        names.iter().for_each(|name| both.want(name));
        both.main.connect();
        both.aside.connect();
        both
    }

    pub(crate) fn want(&mut self, name: &str) {
        self.want_of(EDS, name);
    }

    pub(crate) fn want_of(&mut self, type_url: &str, name: &str) {
        self.wanted.insert(name.to_owned());
        self.tell(type_url, name, true);
    }

    fn unwant(&mut self, name: &str) {
        self.wanted.remove(name);
        self.tell(EDS, name, false);
    }

    fn tell(&mut self, type_url: &str, name: &str, wanted: bool) {
        let want = Want {
            type_url: TypeUrl::new(type_url),
            target: Target::Name(Name::from(name)),
            wanted,
            written: None,
        };
        let mut streams = [
            (LegKind::Main, &mut self.main.client),
            (LegKind::Aside, &mut self.aside.client),
        ];
        let leg = self.division.route(LegKind::Main, &want, &mut streams);
        let upstream = match leg {
            LegKind::Main => &mut self.main,
            LegKind::Aside => &mut self.aside,
        };
        let changes = upstream.client.handle_want(&want);
        upstream.publish(changes);
        self.turn();
    }

    fn turn(&mut self) {
        let now = self.main.now;
        let mut streams = [
            (LegKind::Main, &mut self.main.client),
            (LegKind::Aside, &mut self.aside.client),
        ];
        let wanted = &self.wanted;
        self.division
            .turn(&mut streams, |_, name| wanted.contains(name.as_str()), now);
    }

    /// The requests for endpoints that are sent now, on the first stream and on the other.
    pub(crate) fn sent(&mut self) -> [Vec<String>; 2] {
        self.sent_of("eds")
    }

    /// The same for another type.
    pub(crate) fn sent_of(&mut self, key: &str) -> [Vec<String>; 2] {
        self.turn();
        [self.main.sent(), self.aside.sent()].map(|mut lines| {
            lines.retain(|line| line.starts_with(key));
            lines
        })
    }

    pub(crate) fn pass(&mut self, seconds: u64) {
        for _ in 0..seconds {
            self.main.pass(ms(1000));
            self.aside.pass(ms(1000));
            self.turn();
        }
    }

    /// Both, after so many seconds.
    fn after(&mut self, seconds: u64) -> &mut Self {
        self.pass(seconds);
        self
    }

    /// Time passes at a server with these endpoints. Returns the last list that each stream was sent, where it changed.
    pub(crate) fn at(&mut self, server: &Java<'_>, seconds: u64) -> Vec<String> {
        let mut lists: Vec<String> = Vec::new();
        for _ in 0..seconds {
            for (on, lines) in self.sent().into_iter().enumerate() {
                let Some(line) = lines.last() else { continue };
                let list = line.split(['[', ']']).nth(1).unwrap().to_owned();
                let upstream = if on == 0 { &mut self.main } else { &mut self.aside };
                let names: BTreeSet<String> = list.split(' ').map(ToOwned::to_owned).collect();
                // It has nothing new for a client that has its version and the names of its last response.
                let new = !names.is_subset(&self.known[on]) || !line.contains(" vcurrent ");
                if let Some(response) = server.answer(&list, lists.len()).filter(|_| new) {
                    self.known[on] = names;
                    upstream.accepts_sotw(response);
                }
                lists.push(format!("{} [{list}]", ["main", "aside"][on]));
            }
            self.pass(1);
        }
        lists.dedup();
        lists
    }

    pub(crate) fn clusters(&mut self, version: &str, names: &[&str]) {
        let mut response = sotw(CDS, version, version, &[]);
        response.resources = names.iter().map(|name| cluster(name)).collect();
        self.main.hears_sotw(response);
        self.turn();
    }

    fn changes(&self) -> Vec<&Changes> {
        self.main.published.iter().chain(&self.aside.published).collect()
    }
}

impl Java<'_> {
    pub(crate) fn answer(&self, list: &str, nonce: usize) -> Option<DiscoveryResponse> {
        let names: Vec<&str> = list.split(' ').filter(|name| !name.is_empty()).collect();
        let all = names.iter().all(|name| self.0.contains(name));
        let puts: Vec<String> = names.iter().map(|name| format!("{name}=1")).collect();
        let puts: Vec<&str> = puts.iter().map(String::as_str).collect();
        all.then(|| sotw(EDS, "current", &format!("j{nonce}"), &puts))
    }
}

/// A cluster that takes its endpoints from `SERVICE`, for `NAME:SERVICE`, else from its own name.
fn cluster(text: &str) -> Any {
    let (name, service) = text.split_once(':').unwrap_or((text, ""));
    Any {
        type_url: CDS.to_owned(),
        value: served_by(name, service),
    }
}

/// Both streams, on which these clusters and these endpoints are held.
fn holding(names: &[&str], clusters: &[&str]) -> Both {
    let mut both = Both::new(names);
    both.main.sent();
    both.clusters("1", clusters);
    let puts: Vec<String> = names.iter().map(|name| format!("{name}=1")).collect();
    let puts: Vec<&str> = puts.iter().map(String::as_str).collect();
    both.main.hears_sotw(sotw(EDS, "1", "e1", &puts));
    both.sent();
    both
}

/// K-01, K-16: a cluster is renamed. The old name leaves the list with the first new one, at once; what is held of it stays, and it is
/// asked for on the other stream once it is clear that clients hold it. When content names it again, it comes back.
#[test]
fn a_name_that_content_names_no_longer() {
    let mut both = holding(&["a", "old"], &["a", "old"]);
    both.clusters("2", &["a", "new"]);
    assert_eq!(both.sent(), [vec!["eds [a] v1 ack e1".to_owned()], vec![]]);
    both.want("new");
    assert_eq!(both.sent(), [vec!["eds [a new] v1 ack e1".to_owned()], vec![]]);
    assert_eq!(both.main.named(EDS), "a=1 old=1");
    assert_eq!(both.after(5).sent(), [vec![], vec!["eds [old] vunknown".to_owned()]]);
    both.aside.hears_sotw(sotw(EDS, "7", "f1", &["old=2"]));
    assert_eq!(both.aside.named(EDS), "old=2", "a server that still has it is heard");
    both.aside.sent();
    both.clusters("3", &["a", "new", "old"]);
    assert_eq!(both.sent(), [vec!["eds [a new old] v1 ack e1".to_owned()], vec![]]);
    both.unwant("old");
    assert_eq!(both.sent(), [vec!["eds [a new] v1 ack e1".to_owned()], vec![]]);
}

/// K-01: nobody wants it any more: it is not asked for at all. A name that content never named stays in the list, and so does one that
/// another cluster names.
#[test]
fn who_leaves_the_list() {
    let mut both = holding(&["a", "old", "shared", "never"], &["a", "old", "x:shared", "y:shared"]);
    both.wanted.remove("old");
    both.clusters("2", &["a", "y:shared"]);
    assert_eq!(both.sent(), [vec!["eds [a never shared] v1 ack e1".to_owned()], vec![]]);
    assert_eq!(both.after(60).sent(), [[""; 0]; 2], "it lingers, and is not asked for");
    both.unwant("old");
    assert_eq!(both.sent(), [[""; 0]; 2]);
    assert_eq!(both.main.named(EDS), "a=1 never=1 shared=1");
    assert_eq!(both.division.poll_timeout(), None);
}

/// K-01: the last name of a list stays in it until there is another, because servers take an empty list for a question about all.
#[test]
fn no_list_becomes_empty() {
    let mut both = holding(&["old"], &["old"]);
    both.clusters("2", &["new"]);
    assert_eq!(both.sent(), [[""; 0]; 2]);
    both.want("new");
    assert_eq!(both.sent(), [vec!["eds [new] v1 ack e1".to_owned()], vec![]]);
}

/// K-01: what the server says of a name that stays in the list until another one comes counts, also when content names it again.
#[test]
fn what_stays_in_the_list_is_heard() {
    let mut both = holding(&["old"], &["old"]);
    both.clusters("2", &["new"]);
    both.main.hears_sotw(sotw(EDS, "2", "e2", &["old=2"]));
    assert_eq!(both.main.named(EDS), "old=2");
    both.sent();
    both.clusters("3", &["old"]);
    assert_eq!(both.main.named(EDS), "old=2");
}

/// E-27: a name that the server lacks silences it. It is asked once more; then the new names leave the list, and are asked for in halves,
/// one half at a time, until the one that silences it stands alone. What was answered goes back, and nothing that is held is lost.
#[test]
fn a_name_that_silences() {
    let server = Java(&["a", "b", "c", "d"]);
    let mut both = Both::new(&["a"]);
    assert_eq!(both.at(&server, 1), ["main [a]"]);
    ["b", "c", "d", "missing"].iter().for_each(|name| both.want(name));
    let lists = both.at(&server, 80);
    assert_eq!(
        lists,
        [
            "main [a b c d missing]",
            "main [a]",
            "aside [b c d missing]",
            "aside [b c]",
            "main [a b c]",
            "aside [d missing]",
            "aside [d]",
            "main [a b c d]",
            "aside [missing]"
        ]
    );
    assert_eq!(both.main.named(EDS), "a=1 b=1 c=1 d=1 missing:TimedOut");
    // It is created: what was answered goes back.
    let server = Java(&["a", "b", "c", "d", "missing"]);
    both.aside.hears_sotw(server.answer("missing", 99).unwrap());
    assert_eq!(both.at(&server, 1), ["main [a b c d missing]", "aside [missing]"]);
    assert_eq!(both.division.poll_timeout(), None);
}

/// E-27: a server that answers when it is asked once more, without the name, is not silenced by names that it lacks. Nothing moves, then
/// or later on this stream.
#[test]
fn a_server_that_has_nothing_new() {
    let mut both = Both::new(&["a"]);
    both.main.sent();
    both.main.hears_sotw(sotw(EDS, "1", "e1", &["a=1"]));
    both.main.sent();
    both.want("missing");
    assert_eq!(both.sent(), [vec!["eds [a missing] v1 ack e1".to_owned()], vec![]]);
    both.pass(20);
    assert_eq!(
        both.sent(),
        [vec!["eds [a missing] v ack e1".to_owned()], vec![]],
        "once more"
    );
    both.main.hears_sotw(sotw(EDS, "1", "e2", &["a=1"]));
    assert_eq!(both.sent(), [vec!["eds [a missing] v1 ack e2".to_owned()], vec![]]);
    both.want("another");
    both.sent();
    assert_eq!(both.after(120).sent(), [[""; 0]; 2]);
}

/// E-27: a list that is silent for something that cannot leave it, here a collection, stays silent, whatever leaves it. What is answered on
/// the other stream goes back once, and then stays there, where what changes is heard.
#[test]
fn a_list_that_is_silent_anyway() {
    let collection = "xdstp://a/envoy.config.endpoint.v3.ClusterLoadAssignment/*";
    let mut both = Both::new(&[collection, "b"]);
    let mut lists = 0;
    for round in 0..3600 {
        let [main, aside] = both.sent();
        lists += main.len();
        if round > 0 && main.iter().any(|line| line.starts_with("eds [b ")) {
            // It went back: nothing is asked for on the other stream, so that ends.
            both.aside.reconnect();
        } else if aside.iter().any(|line| line == "eds [b] v") {
            let mut response = sotw(EDS, "1", &format!("e{round}"), &[]);
            response.resource_errors = vec![error("b", 5)];
            both.aside.hears_sotw(response);
        }
        both.pass(1);
    }
    assert!(lists < 8, "{lists} lists");
}

/// E-18, E-27: a server that waits to be asked for all that it has gets all names together again as soon as there is another one.
#[test]
fn a_server_that_withholds() {
    let mut both = Both::new(&["a"]);
    assert_eq!(both.sent(), [vec!["eds [a] v".to_owned()], vec![]]);
    assert_eq!(both.after(40).sent(), [vec![], vec!["eds [a] v".to_owned()]]);
    both.want("b");
    assert_eq!(both.sent(), [vec!["eds [a b] v".to_owned()], vec![]]);
}

/// E-27: many names that the server lacks stand together, apart from the others. They are tried again when there are news of the type, more
/// and more seldom, and else not.
#[test]
fn many_that_silence() {
    let server = Java(&["a"]);
    let mut both = Both::new(&["a"]);
    both.at(&server, 1);
    (0..16).for_each(|number| both.want(&format!("m{number:02}")));
    let requests = both.at(&server, 300).len();
    assert!(requests < 50, "{requests}");
    assert!(both.main.named(EDS).starts_with("a=1 m00:TimedOut"));
    assert_eq!(both.at(&server, 7200), [""; 0], "at rest");
    // One of them is created, which is news for the first stream too.
    both.main.hears_sotw(sotw(EDS, "next", "e9", &["a=2"]));
    let server = Java(&["a", "m07"]);
    let lists = both.at(&server, 300);
    assert!(lists.contains(&"main [a m07]".to_owned()), "{lists:?}");
    for round in 0..24 {
        both.main.hears_sotw(sotw(EDS, &format!("v{round}"), "e9", &["a=2"]));
        both.at(&server, 300);
    }
    both.main.hears_sotw(sotw(EDS, "last", "e9", &["a=2"]));
    assert!(both.at(&server, 300).len() < 3, "seldom");
    (0..16).for_each(|number| both.unwant(&format!("m{number:02}")));
    assert_eq!(both.division.poll_timeout(), None);
    assert!(both.changes().len() < 1000);
}
