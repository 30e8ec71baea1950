// SPDX-License-Identifier: Apache-2.0
//! Which clients share a view (K-02): the nodes of clients, the rules of the relay, and the client that a control plane sees.
//!
//! Owns nodes, rules, and the seats that the relay gives. Knows nothing of the content of views.

use std::sync::Arc;
use std::time::Duration;

use cache::{self, Routes, Scopes, View};
use classes::{Classes, ENDPOINT_COLLECTIONS, Path, Pattern, Piece, Rule as ClassRule, Selector};
use distributary::downstream::Seats;
use identity::Identity;
use proto::envoy::config::core::v3::{Locality, Node};
use proto::google::protobuf::{Struct, Value, value::Kind};
use protocol::{self, ClientSettings, Opening, read_node};
use xds::{self, Dialect, Guards, Types};

use super::course::Course;
use super::event::Event;
use super::origins::Origins;
use super::rng::Rng;
use super::tally::{Broken, Rule, Tally};
use super::upstream::SILENT;
use super::world::World;
use super::writer::GUARD;
use super::zone::Zone;

/// What the clients of a zone have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Profile {
    name: &'static str,
    /// Whether they read collections of endpoints: that alone makes a class of its own (K-04).
    collections: bool,
}

/// How long unwanted names are kept.
const LINGER: Duration = Duration::from_secs(30);
const TENANT: &str = "tenant";
/// The prefix of all names of zones, and of no others.
const EDGE: &str = "edge-";

/// All clients are of one class.
pub(crate) const ANYBODY: Profile = ALL[0];

const ALL: [Profile; 3] = [
    Profile::new("edge-a", false),
    Profile::new("edge-b", false),
    Profile::new("edge-b", true),
];

/// The zones of a world.
pub(crate) fn profiles(rng: &mut Rng) -> Vec<Profile> {
    let count = match rng.below(10) {
        0..=3 => 0..2,
        4..=6 => 1..3,
        _ => 0..3,
    };
    ALL[count].to_vec()
}

/// The rules of the relay. Whichever they are, they keep the zones apart.
pub(crate) fn rules(rng: &mut Rng) -> Classes {
    let text = |text: &str| vec![Piece::Text(text.to_owned())];
    let tenant = Selector::Metadata(Path::new([TENANT]));
    let keyed = |key: Vec<Selector>| ClassRule {
        key,
        ..ClassRule::default()
    };
    let only = |selector: Selector, pattern: &str, rule: ClassRule| ClassRule {
        matches: vec![(selector, Pattern::read(pattern).expect("it is a pattern"))],
        ..rule
    };
    Classes::new(match rng.below(4) {
        0 => vec![only(Selector::Cluster, "edge-*", keyed(vec![Selector::Cluster]))],
        1 => ["edge-a", "edge-b"]
            .map(|name| {
                let named = ClassRule {
                    cluster: Some(text(name)),
                    ..ClassRule::default()
                };
                only(Selector::Cluster, name, named)
            })
            .to_vec(),
        2 => vec![ClassRule {
            id: Some([text("relay/"), vec![Piece::Key(0)]].concat()),
            ..keyed(vec![tenant])
        }],
        _ => vec![
            only(Selector::Zone, "nowhere-*", keyed(Vec::new())),
            keyed(vec![Selector::Zone]),
        ],
    })
}

/// The relay's own node.
pub(crate) fn relay_node() -> Node {
    Node {
        id: "relay".to_owned(),
        cluster: "relays".to_owned(),
        ..Node::default()
    }
}

impl Profile {
    const fn new(name: &'static str, collections: bool) -> Self {
        Self { name, collections }
    }

    /// The node of one of its clients.
    pub(crate) fn node(&self, id: String, mut client_features: Vec<String>) -> Node {
        if self.collections {
            client_features.push(ENDPOINT_COLLECTIONS.to_owned());
        }
        let name = || self.name.to_owned();
        let tenant = Value {
            kind: Some(Kind::StringValue(name())),
        };
        Node {
            id,
            cluster: name(),
            user_agent_name: name(),
            locality: Some(Locality {
                zone: name(),
                ..Locality::default()
            }),
            metadata: Some(Struct {
                fields: [(TENANT.to_owned(), tenant)].into(),
            }),
            client_features,
            ..Node::default()
        }
    }

    pub(crate) const fn reads_collections(&self) -> bool {
        self.collections
    }

    /// K-04: the clients that a control plane takes a node for.
    pub(crate) fn recognise(node: &Node, tally: &mut Tally) -> Result<Self, Broken> {
        tally.hit(Rule::K04);
        Self::of(node).ok_or_else(|| Broken::new(Rule::K04, format!("no control plane knows {node:?}")))
    }

    /// The same, if there are any.
    pub(crate) fn of(node: &Node) -> Option<Self> {
        let read = read_node(node);
        ALL.into_iter().find(|profile| profile.is(&read))
    }

    /// Whether a control plane takes this node for one of its clients, from all its fields.
    fn is(&self, node: &classes::Node) -> bool {
        let tenant = node.metadata.get(TENANT).map_or("", String::as_str);
        let says = [
            &node.cluster,
            node.locality.zone.as_str(),
            &node.user_agent.name,
            tenant,
        ];
        let mut names = says.into_iter().filter(|text| text.starts_with(EDGE)).peekable();
        names.peek().is_some()
            && names.all(|name| name == self.name)
            && node.features.endpoint_collections == self.collections
    }
}

/// A view that no client can use.
pub(crate) fn nobody() -> Arc<View> {
    View::new(classes::Class::default(), settings())
}

const fn settings() -> cache::ViewSettings {
    cache::ViewSettings {
        linger: LINGER,
        names_per_view: 0,
        pinned_bytes_per_view: 0,
        history_bytes: 16 << 20,
    }
}

pub(crate) fn scopes(rules: &Classes, routes: Routes, limit: usize) -> Scopes {
    let scopes = Scopes::new(rules.clone(), routes, settings(), limit);
    scopes.set_guards(Guards {
        all: GUARD,
        classes: Vec::new(),
    });
    scopes
}

/// How a relay opens streams to control planes.
pub(crate) fn client_settings(relay: &str, wildcard_quiet: Duration) -> Arc<ClientSettings> {
    Arc::new(ClientSettings {
        types: Types::default(),
        relay_id: relay.to_owned(),
        does_not_exist: SILENT,
        wildcard_quiet,
        features: Default::default(),
    })
}

/// The beginning of a stream of which nothing else is known.
pub(crate) fn opening(dialect: Dialect, nonce_prefix: u32) -> Opening {
    Opening {
        dialect,
        service: None,
        nonce_prefix,
        identity: Identity::default(),
        polls: false,
    }
}

/// What the streams of clients are allowed.
pub(crate) fn stream_settings(rules: &Classes) -> protocol::StreamSettings {
    protocol::StreamSettings {
        types: Types::default(),
        classes: rules.clone(),
        limits: Default::default(),
        timers: Default::default(),
        anonymous: false,
        relay_id: "relay".to_owned(),
        access: Arc::default(),
    }
}

impl World {
    /// A place for a stream at the view of its client's class; none if there are too many views.
    pub(crate) fn seat(&mut self, zone: usize, node: &Arc<classes::Node>) -> Result<Option<Seats>, Broken> {
        let place = Seats::enter(
            &self.relay.scopes,
            node,
            &Arc::default(),
            self.relay.settings.timers.move_after,
        );
        if self.origins.lists.is_some() {
            return place
                .map(Some)
                .map_err(|full| Broken::new(Rule::Views, full.to_string()));
        }
        let entered = place.and_then(|place| Ok((place, self.relay.scopes.enter(node, None, 0, &Arc::default())?)));
        self.origins.see_ends(&mut self.course);
        for view in self.relay.scopes.take_created() {
            let node = view.class().presented().over(&relay_node());
            let zone = self.origins.recognise(&node, &mut self.course.tally)?;
            if !self.origins[zone].attach(view, node) {
                return broken!(K02, "zone {zone} has two views");
            }
        }
        self.course.tally.hit(Rule::K02);
        let (open, limit) = (self.relay.scopes.all(), self.relay.views);
        match entered {
            Ok((_, seat)) if !Arc::ptr_eq(seat.view(), &self.origins[zone].writer.view) => {
                broken!(
                    K02,
                    "a client of zone {zone} is at the view of {:?}",
                    seat.view().class()
                )
            }
            Ok(_) if limit > 0 && open.len() > limit => {
                broken!(Views, "{} views of {limit}", open.len())
            }
            Ok((place, _)) => Ok(Some(place)),
            Err(full) => {
                self.course.tally.hit(Rule::Views);
                if limit == 0 || open.len() < limit || open.iter().any(|view| view.demand().seats() == 0) {
                    return broken!(Views, "refused without need: {full}");
                }
                Ok(None)
            }
        }
    }

    /// Ends views that no client has used for long.
    pub(crate) fn sweep(&mut self) {
        let now = self.course.clock.instant();
        self.relay.scopes.sweep(now);
        self.origins.sweep_above(now);
        self.origins.see_ends(&mut self.course);
        if !self.course.calm {
            self.course.soon(1000, 10_000, Event::Sweep);
        }
    }

    /// Restarts the relay, with nothing known.
    pub(crate) fn forget_views(&mut self) {
        let routes = self.origins.lists.as_ref().map(|lists| lists.plan.routes.clone());
        self.relay.restart(routes.unwrap_or_default());
        let ours = self.origins.iter_mut().filter(|zone| zone.below.is_none());
        ours.for_each(Zone::detach);
    }

    /// When all sessions read the first servers, the views of the others end.
    pub(crate) fn close_lower(&mut self) -> Result<(), Broken> {
        if self.origins.lists.is_some() {
            self.sweep();
            self.course.clock.skip(LINGER);
            self.sweep();
        }
        let views = self.relay.scopes.all();
        self.origins.check_firsts(&views, &mut self.course.tally)
    }

    /// In the end no view is left.
    pub(crate) fn close_views(&mut self) -> Result<(), Broken> {
        self.sweep();
        for _ in 0..2 {
            self.course.clock.skip(LINGER);
            self.sweep();
        }
        match self.relay.scopes.all().first() {
            None if self.origins.views_above() > 0 => broken!(Empty, "a view of a relay above is left"),
            Some(view) => broken!(Empty, "the view of {:?} is left", view.class()),
            None => Ok(()),
        }
    }
}

impl Origins {
    /// The writers of views that have ended stop.
    pub(crate) fn see_ends(&mut self, course: &mut Course) {
        for zone in self.iter_mut().filter(|zone| zone.writer.view.mailbox().is_closed()) {
            course.log(|| format!("upstream {}: the view has ended", zone.id));
            zone.detach();
        }
    }
}
