// SPDX-License-Identifier: Apache-2.0
//! Runs a story: a few lines of text, one event or one expectation each.
//!
//! ```text
//! origin put cds a@1 b@1:eds, drop rds r   # one message of the control plane; `other` is a second one, for a second view
//! origin silent cds | speaks | lost | back # it does not answer for a type; it answers again; it is lost, or back; or `trying`:
//!                                          # it is being tried for the first time
//! client subscribe cds *                   # without names: the legacy empty request; the first one carries what it holds
//! client unsubscribe cds a
//! client gets cds * [a@1 b@1]              # it subscribes, is sent exactly this next, and accepts it
//! client has cds * [a@1 b@1:eds]           # the same, after the control plane `origin` has put these
//! client <- cds [a@1 b@1] -[c], ack        # the next response, exactly; answered at once, or by `client ack [cds]`
//! client <- cds sotw [a@2] | delta -[b]    # where the dialects differ
//! client sends cds [a *] v1 n2 => ack      # a SotW request as it is: names, version and nonce of the nth response of the
//! client sends cds +a -b n2 !              # type; a delta request; `!` adds an error; `=>` checks how it was understood
//! client ack cds => changed 3s | no change # the response had a change, the oldest of which arrived so long ago
//! client status cds Error                  # how the relay sees the client
//! client ends Unavailable no upstream      # the stream ends with this code, and with these words in its message
//! client wants cds a b                      # what the relay wants of the view for this client
//! client order b a                        # the order of the resources in the next response
//! client finds cds a@1 a@0                  # the older contents that are found in the place of what it rejects
//! client holds cds a own | older | nothing | unknown | all # what it holds of a name that it rejects, as the view is told; or all is well
//! client rests                              # there is nothing that the relay would have to look at for it
//! client gates 1 | is node-id               # how many gates a bound opened; the node id that the relay sees
//! client upstream can FEATURE | cannot FEATURE # the features that the control plane sees for its class
//! client can FEATURE... | speaks eds        # before its first request: node features, by which it may be of the class
//!                                           # that reads the view `other`; a stream of one service; or
//! client runs gRPC Go                      # the name of its software
//! client blames a b                         # the names in the errors with which it rejects responses from now on
//! client nameless | via relay-1 | renames x # no node, relays on the way; then another node with every request
//! client locates                            # it asks for names by locators
//! client reconnects | moves other          # a new stream of the same client; another view
//! client stalls | reads 1 | reads          # its transport takes nothing, one response, or everything
//! nothing for 2s                           # no client is sent anything (300 ms by default)
//! wait 2s                                  # time passes
//! relay restarts                           # and has forgotten everything
//! relay rule {types: cds, names: a*}       # one more rule, as in the configuration; or `secrets by_rule`
//! relay rules {names: a*}; {names: b}      # these are the rules from now on, also for open streams
//! client proves spiffe://td/x dns:y        # its identity, before its first request
//! poller polls cds [a] 2s                  # over REST, for 2s (1s): see `poller`
//! poller <- cds 200 [a@1], ack             # or 304, 503, 404, `refused CODE`; with `nack` it keeps what it had
//! sotw client ...                          # a line for one dialect only
//! client subscribe eds xdstp://a/EDS/x     # in a name of new style the type may be short, in capitals
//! ```
//!
//! Owns time and the order of events. Does not know what is right.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use distributary::classes::{Class, Classes};
use distributary::config::{Config, Flags};
use distributary::proto::envoy::config::core::v3::Node;
use distributary::protocol::{self, ClientSettings, Server, StreamLimits, StreamSettings, StreamTimers, read_node};
use distributary::xds::{Access, Dialect, Holds, Name, ServerFeatures, Types};

use crate::client::Client;
use crate::origin::{Origin, resource};
use crate::poller::Poller;
use crate::text::{Spec, duration, expected, full, type_url};
use crate::topic::{identity, raw};

/// Runs the story in both dialects.
pub(crate) fn both(text: &str) {
    sotw(text);
    delta(text);
}

/// Who asks for everything, and what it is told beside its first answer in delta: one that gets what all others get, and one that has rows
/// of its own. What is decided for both must stand in one place.
pub(crate) const EVERYTHING: [(&str, &str, &str); 2] = [("*", "", ""), ("* none", " ![none=5]", " -[none]")];

/// Tests that are stories, in both dialects or in one: `name => both "...";`, also several after each other. With `for ROW in ROWS` each runs
/// once for each row, whose parts it has in braces; a failure prints the story as it ran.
macro_rules! stories {
    ($($(#[$doc:meta])* $name:ident $(for $row:tt in $rows:expr)? => $($dialect:ident $text:literal),+;)*) => {$(
        $(#[$doc])*
        #[test]
        fn $name() {
            $crate::story::stories!(@ $(for $row in $rows =>)? $($dialect $text),+);
        }
    )*};
    (@ for $row:tt in $rows:expr => $($dialect:ident $text:literal),+) => {
        for $row in $rows {
            $($crate::story::$dialect(&format!($text));)+
        }
    };
    (@ $($dialect:ident $text:literal),+) => {
        $($crate::story::$dialect($text);)+
    };
}
pub(crate) use stories;

/// Runs the story with SotW clients.
pub(crate) fn sotw(text: &str) {
    Story::new(Dialect::Sotw).run(text);
}

/// Runs the story with delta clients.
pub(crate) fn delta(text: &str) {
    Story::new(Dialect::Delta).run(text);
}

/// Returns rules as the configuration reads them. They need no names here.
fn rules(words: &[String]) -> Arc<Access> {
    let mut rules = String::new();
    let mut secrets = "allow";
    for (at, words) in words.iter().enumerate() {
        match words.split_once(' ') {
            Some(("secrets", how)) => secrets = how,
            Some((_, rule)) => rules += &format!("- {{name: r{at}, {}\n", rule.strip_prefix('{').expect("a mapping")),
            None => panic!("what about {words}?"),
        }
    }
    let rules = if rules.is_empty() {
        rules
    } else {
        format!("rules:\n{rules}")
    };
    let text = format!("secrets: {secrets}\nupstream: {{xds_servers: [{{server_uri: cp:1}}]}}\n{rules}");
    Config::parse(&text, "rules", &Flags::default())
        .expect("good rules")
        .access
}

struct Story {
    dialect: Dialect,
    now: Instant,
    settings: StreamSettings,
    chunk: usize,
    origins: BTreeMap<String, Origin>,
    clients: BTreeMap<String, Client>,
    pollers: BTreeMap<String, Poller>,
    /// The words about rules so far.
    access: Vec<String>,
    log: Vec<String>,
}

/// The duration of "nothing", unless a story gives one.
const NOTHING: Duration = Duration::from_millis(300);
/// How long a story is watched after its end.
const AFTERWARDS: Duration = Duration::from_secs(60);

impl Story {
    fn new(dialect: Dialect) -> Self {
        #[expect(clippy::disallowed_methods, reason = "where simulated time begins")]
        let now = Instant::now();
        Self {
            dialect,
            now,
            settings: StreamSettings {
                types: Types::default(),
                limits: StreamLimits::default(),
                timers: StreamTimers::default(),
                classes: Classes::default(),
                anonymous: false,
                relay_id: "relay-1".to_owned(),
                access: Arc::default(),
            },
            chunk: 1 << 20,
            origins: ["origin", "other"].map(|name| (name.to_owned(), Origin::new())).into(),
            clients: BTreeMap::new(),
            pollers: BTreeMap::new(),
            access: Vec::new(),
            log: Vec::new(),
        }
    }

    fn run(mut self, text: &str) {
        for (number, line) in text.lines().enumerate() {
            let line = line.split(" #").next().unwrap_or_default().trim();
            let line = &full(line);
            let line = match line.split_once(' ') {
                Some(("sotw", rest)) if self.dialect == Dialect::Sotw => rest,
                Some(("delta", rest)) if self.dialect == Dialect::Delta => rest,
                Some(("sotw" | "delta", _)) => continue,
                Some(_) | None => line,
            };
            if !line.is_empty() && !line.starts_with('#') {
                self.log.push(format!("{number:>3}  {line}"));
                self.line(line);
                self.pump();
            }
        }
        self.log.push("the end: nothing more".to_owned());
        self.nothing(AFTERWARDS);
    }

    fn line(&mut self, line: &str) {
        let (subject, rest) = line.split_once(' ').unwrap_or((line, ""));
        match subject {
            "origin" | "other" => {
                let mut words = Vec::new();
                for clause in rest.split(',') {
                    words.clear();
                    words.extend(clause.split_whitespace());
                    let now = self.now;
                    self.origins.get_mut(subject).expect("an origin").clause(&words, now);
                }
            }
            "nothing" => self.nothing(rest.strip_prefix("for ").map_or(NOTHING, duration)),
            "wait" => self.wait(duration(rest)),
            "relay" => self.relay(&rest.split_whitespace().collect::<Vec<_>>()),
            name => self.client_line(name, rest),
        }
    }

    fn relay(&mut self, words: &[&str]) {
        match words {
            ["restarts"] => {
                self.origins.values_mut().for_each(Origin::forget);
                self.clients.values_mut().for_each(Client::disconnect);
            }
            ["chunk", bytes] => self.chunk = bytes.parse().expect("a number"),
            ["limit", "name_bytes", max] => self.settings.limits.name_bytes = max.parse().expect("a number"),
            ["limit", "names_per_stream", max] => {
                self.settings.limits.names_per_stream = max.parse().expect("a number")
            }
            ["limit", "types_per_stream", max] => {
                self.settings.limits.types_per_stream = max.parse().expect("a number")
            }
            ["anonymous"] => self.settings.anonymous = true,
            ["secrets", ..] | ["rule", ..] => {
                self.access.push(words.join(" "));
                self.settings.access = rules(&self.access);
            }
            ["rules", ..] => {
                let all = words.iter().skip(1).copied().collect::<Vec<_>>().join(" ");
                let all = all.split(';').filter(|rule| !rule.is_empty());
                self.access = all.map(|rule| format!("rule {}", rule.trim())).collect();
                self.settings.access = rules(&self.access);
                for client in self.clients.values_mut() {
                    client.govern(&self.settings.access, self.now);
                }
            }
            other => panic!("a relay does not know {other:?}"),
        }
    }

    fn client_line(&mut self, name: &str, line: &str) {
        match line.split_once(' ') {
            Some(("<-", rest)) => return self.expect(name, rest),
            Some(("gets", rest)) => return self.gets(name, rest),
            Some(("has", rest)) => return self.has(name, rest),
            Some(_) | None => {}
        }
        let Some((line, how)) = line.split_once("=>") else {
            return self.client_event(name, line);
        };
        self.client_event(name, line);
        self.clients[name].was_understood(how.trim(), self.now);
    }

    /// `cds * [a@1]`, or `cds * sotw [a@1] | delta [a@1] -[b]`.
    fn gets(&mut self, name: &str, rest: &str) {
        let marks = [" [", " -[", " ![", " sotw "].map(|mark| rest.find(mark));
        let (asked, said) = rest.split_at(marks.into_iter().flatten().min().expect("what it is sent"));
        let topic = asked.split(' ').next().unwrap_or_default();
        self.line(&format!("{name} subscribe {asked}"));
        self.pump();
        self.line(&format!("{name} <- {topic} {}, ack", said.trim()));
    }

    /// `cds * [a@1 b@1:eds]`.
    fn has(&mut self, name: &str, rest: &str) {
        let (asked, specs) = rest.split_once(" [").expect("names, and resources in brackets");
        let topic = asked.split(' ').next().unwrap_or_default();
        let specs = specs.trim_end_matches(']');
        self.line(&format!("origin put {topic} {specs}"));
        self.pump();
        let items = specs.split_whitespace().map(Spec::parse);
        let items: Vec<String> = items.map(|spec| identity(&spec.name, Some(&spec.label))).collect();
        self.gets(name, &format!("{asked} [{}]", items.join(" ")));
    }

    fn client_event(&mut self, name: &str, line: &str) {
        let settings = Arc::new(self.settings.clone());
        let words: Vec<&str> = line.split_whitespace().collect();
        let (verb, words) = words.split_first().expect("a verb");
        let (now, dialect, chunk) = (self.now, self.dialect, self.chunk);
        if name.starts_with("poller") {
            let poller = self.pollers.entry(name.to_owned()).or_default();
            return poller.line(verb, line, &settings, now);
        }
        let new = || Client::new(dialect, "origin", chunk);
        let client = self.clients.entry(name.to_owned()).or_insert_with(new);
        if *verb != "ends" {
            assert!(
                client.ended.is_none(),
                "the stream of {name} has ended: {:?}",
                client.ended
            );
        }
        match (*verb, words) {
            ("subscribe", [topic, names @ ..]) => client.subscribe(&settings, &type_url(topic), names, now),
            ("unsubscribe", [topic, names @ ..]) => client.unsubscribe(&settings, &type_url(topic), names, now),
            ("ack" | "nack", topic) => {
                let topic = topic.first().map(|topic| type_url(topic));
                client.settle(&settings, topic.as_ref(), *verb == "ack", now);
            }
            ("sends", [topic, ..]) => {
                let rest = line.split_once(topic).expect("a topic").1;
                let topic = type_url(topic);
                let raw = raw(rest, client, &topic);
                client.send(&settings, &topic, raw, now);
            }
            ("speaks", [topic]) => client.service = Some(type_url(topic)),
            ("can", features) => {
                let node = client.node.get_or_insert_default();
                node.client_features = features.iter().map(|feature| (*feature).to_owned()).collect();
                client.view = view(client).to_owned();
            }
            ("runs", program) => client.node.get_or_insert_default().user_agent_name = program.join(" "),
            ("blames", names) => client.blames = names.join(", "),
            ("nameless", []) => client.node = None,
            ("locates", []) => client.locates = true,
            ("via", relays) => client.came_through(relays),
            ("renames", [id]) => client.rename(id),
            ("reconnects", []) => client.disconnect(),
            ("stalls" | "reads", []) => client.stalled = *verb == "stalls",
            ("reads", [count]) => {
                let count = count.parse().expect("a number");
                client.read(count, self.origins[&client.view].cut(), now);
            }
            ("moves", [view]) => {
                client.view = (*view).to_owned();
                client.moves(self.now);
                let wants = client.wants.clone();
                let origin = self.origins.get_mut(*view).expect("an origin");
                wants
                    .into_iter()
                    .for_each(|(type_url, target)| origin.want(type_url, target, now));
            }
            ("finds", [topic, contents @ ..]) => {
                let topic = type_url(topic);
                let found = contents
                    .iter()
                    .map(|word| Arc::new(resource(&topic, &Spec::parse(word), now)));
                client.older = found.collect();
            }
            _ => check(client, verb, words),
        }
    }

    /// `cds [a@1] -[b]`, or `cds sotw [a@1] | delta -[b]`, with `nothing` for none; then perhaps `, ack`, `, nack` or
    /// `, ack => no change`.
    fn expect(&mut self, name: &str, rest: &str) {
        let (topic, rest) = rest.split_once(' ').expect("a type and what is said");
        let (rest, then) = rest
            .split_once(',')
            .map_or((rest, None), |(rest, then)| (rest, Some(then.trim())));
        if let Some(poller) = self.pollers.get_mut(name) {
            return poller.expect(&type_url(topic), rest, then);
        }
        let mine = match self.dialect {
            Dialect::Sotw => "sotw ",
            Dialect::Delta => "delta ",
        };
        let wanted = rest
            .split('|')
            .find_map(|part| part.trim().strip_prefix(mine))
            .unwrap_or(rest)
            .trim();
        let client = self
            .clients
            .get_mut(name)
            .unwrap_or_else(|| panic!("{name} has said nothing"));
        if wanted == "nothing" {
            assert!(client.inbox.is_empty(), "but {name} heard {}", client.inbox[0]);
            return;
        }
        let topic = type_url(topic);
        let Some(said) = client.inbox.pop_front() else {
            panic!("but {name} heard nothing (end: {:?})", client.ended);
        };
        let (heard, wanted) = (
            format!("{:?} {said}", said.type_url),
            format!("{topic:?} {}", expected(wanted)),
        );
        assert_eq!(heard, wanted, "{name} heard (left) and not (right)");
        self.log.push(format!("       {name} <- {heard}"));
        if let Some(then) = then {
            let (verb, how) = then.split_at(then.find(' ').unwrap_or(then.len()));
            let topic = topic.url().trim_start_matches("type.googleapis.com/");
            self.client_line(name, &format!("{verb} {topic}{how}"));
        }
    }

    fn nothing(&mut self, how_long: Duration) {
        self.silence();
        self.wait(how_long);
        self.silence();
    }

    fn silence(&mut self) {
        self.pump();
        self.pollers.iter().for_each(|(name, poller)| poller.silent(name));
        for (name, client) in &self.clients {
            if let Some(said) = client.inbox.front() {
                panic!("but {name} heard {:?} {said}", said.type_url);
            }
            assert!(
                client.ended.is_none(),
                "the stream of {name} has ended: {:?}",
                client.ended
            );
        }
    }

    fn wait(&mut self, how_long: Duration) {
        let end = self.now + how_long;
        loop {
            self.pump();
            let timeouts = self
                .clients
                .values()
                .filter_map(|client| client.server.as_ref()?.poll_timeout());
            let events = self.origins.values().flat_map(|origin| origin.events());
            let polls = self.pollers.values().filter_map(Poller::until);
            match timeouts.chain(events).chain(polls).filter(|at| *at > self.now).min() {
                Some(at) if at <= end => self.now = at,
                Some(_) | None => break,
            }
        }
        self.now = end;
        self.pump();
    }

    /// Runs everything that can happen without time passing.
    fn pump(&mut self) {
        for client in self.clients.values_mut() {
            let origin = self.origins.get_mut(&client.view).expect("an origin");
            for (type_url, target) in client.take_wants() {
                origin.want(type_url, target, self.now);
            }
        }
        for poller in self.pollers.values_mut() {
            let origin = self.origins.get_mut(&poller.view).expect("an origin");
            for (type_url, target) in poller.take_wants() {
                origin.want(type_url, target, self.now);
            }
        }
        for (name, origin) in &mut self.origins {
            let changed = origin.tell(self.now);
            for client in self.clients.values_mut().filter(|client| client.view == *name) {
                client.ring(&changed);
            }
        }
        for poller in self.pollers.values_mut() {
            poller.look(self.origins[&poller.view].cut(), self.now);
        }
        for (name, client) in &mut self.clients {
            client.poll(self.origins[&client.view].cut(), self.now);
            let due = client.server.as_ref().and_then(Server::poll_timeout);
            let late = client.ended.is_none() && due.is_some_and(|at| at <= self.now);
            assert!(!late, "{name} would be looked after again and again");
        }
    }
}

impl Drop for Story {
    /// Prints a story that went wrong, up to the line that failed.
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{:?}\n{}", self.dialect, self.log.join("\n"));
        }
    }
}

/// How the relay sees a client.
fn check(client: &mut Client, verb: &str, words: &[&str]) {
    match (verb, words) {
        ("status", [topic, status]) => {
            let topic = type_url(topic);
            let mut all = client.server.as_ref().expect("a stream").status();
            let found = all.find_map(|(of, status)| (*of == topic).then(|| format!("{status:?}")));
            assert_eq!(found.as_deref(), Some(*status));
        }
        ("ends", [code, words @ ..]) => {
            let end = client.ended.take().unwrap_or_else(|| panic!("the stream goes on"));
            let message = words.join(" ");
            assert_eq!(format!("{:?}", end.code), *code, "{end}");
            assert!(end.message.contains(&message), "{end}");
            client.disconnect();
        }
        ("order", names) => {
            let next = client.inbox.front().expect("a response");
            let order: Vec<&str> = next.items.iter().map(|item| item.name.as_str()).collect();
            assert_eq!(order, names, "the order of the next response");
        }
        ("holds", [topic, name, what]) => {
            let stance = client.stances.get(&(type_url(topic), Name::from(*name)));
            let held = match stance.map(|stance| &stance.holds) {
                None => "all",
                Some(Holds::Nothing) => "nothing",
                Some(Holds::Unknown) => "unknown",
                Some(Holds::Version(_)) => "version",
                Some(Holds::Own(_)) => "own",
                Some(Holds::Older(_)) => "older",
            };
            assert_eq!(held, *what, "{name}");
        }
        ("rests", []) => assert!(client.server.as_ref().expect("a stream").is_done(), "it does not rest"),
        ("proves", texts) => client.identity = texts.iter().collect(),
        ("wants", [topic, names @ ..]) => {
            let mut wanted: Vec<String> = client.wanted(&type_url(topic));
            wanted.sort();
            assert_eq!(wanted, *names, "what is wanted of the view");
        }
        ("gates", [count]) => {
            let expired = client.server.as_ref().expect("a stream").expired_gates();
            assert_eq!(expired.to_string(), *count, "gates that opened by themselves");
        }
        ("upstream", [can, feature]) => {
            let settings = ClientSettings {
                types: Types::default(),
                relay_id: "relay-1".to_owned(),
                does_not_exist: Duration::from_secs(15),
                wildcard_quiet: Duration::from_secs(1),
                features: ServerFeatures::default(),
            };
            let presented = class(client).presented().over(&Node::default());
            let upstream = protocol::Client::new(Arc::new(settings), client.dialect, presented);
            let told = upstream.node().client_features.iter().any(|told| told == feature);
            assert_eq!(told, *can == "can", "{:?}", upstream.node().client_features);
        }
        ("is", [id]) => {
            let node = client.server.as_ref().and_then(Server::node).expect("a node");
            assert_eq!(&*node.id, *id);
        }
        other => panic!("a client does not know {other:?}"),
    }
}

/// The class of a client (K-02, K-04).
fn class(client: &Client) -> Class {
    let node = client.node.as_ref().expect("a node");
    Classes::default().class(&read_node(node), &[])
}

/// The view that the clients of a class read.
fn view(client: &Client) -> &'static str {
    if class(client) == Class::default() {
        "origin"
    } else {
        "other"
    }
}
