//! One poll: what a client has, what it wants, and what it is to be told.
//!
//! Owns that nothing is said out of ignorance, and that whoever has something else than there is is told so. Interest and
//! limits are those of a stream: a poll is a stream of one request. Refuses to know HTTP, JSON and how long a client waits.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use super::{End, Opening, Server, StreamSettings};
use crate::proto::envoy::service::discovery::v3::DiscoveryRequest;
use crate::xds::{
    ALL_VARIANTS, Answers, Dialect, Known, Name, Resource, Sight, State, TypeSight, TypeUrl, Version, Want,
};

/// One poll.
///
/// It is made from a request; whoever made it takes what it wants with `poll_want`, and asks `answer` whenever something may
/// have changed, and once more at the end of its time.
pub struct Poll {
    server: Server,
    type_url: TypeUrl,
    /// What the client has.
    version: String,
    /// What it wants; none: all that there is.
    names: Vec<Name>,
}

/// What a poll comes to at one moment.
pub enum PollAnswer<'a> {
    /// Something else than the client has.
    News(PollContent<'a>),
    /// The client has all there is.
    Nothing,
    /// Not all of it is known.
    Open,
}

/// What is known at one moment.
pub struct PollContent<'a> {
    /// All that there is, if that is wanted.
    all: Option<&'a State>,
    /// What is wanted by name.
    named: BTreeMap<&'a Name, &'a Arc<Resource>>,
    /// Whether something is not known.
    open: bool,
}

impl Poll {
    /// A poll for this type.
    ///
    /// # Errors
    /// What would end a stream.
    pub fn new(
        settings: Arc<StreamSettings>,
        type_url: TypeUrl,
        mut asked: DiscoveryRequest,
        answers: &impl Answers,
        now: Instant,
    ) -> Result<Self, End> {
        // H-05: nothing is known of the client but what stands here. H-01: the path says the type.
        let version = std::mem::take(&mut asked.version_info);
        asked.response_nonce = String::new();
        asked.error_detail = None;
        // JSON has no place for whom a variant is.
        if let Some(node) = &mut asked.node {
            node.client_features.retain(|feature| feature != ALL_VARIANTS);
        }
        asked.type_url = type_url.url().to_owned();
        // H-06: no names are all names.
        if asked.resource_names.is_empty() {
            asked.resource_names.push(Name::WILDCARD.to_owned());
        }
        let all = asked.resource_names.iter().any(|name| name == Name::WILDCARD);
        let names = asked.resource_names.iter().filter(|name| *name != Name::WILDCARD);
        let names: Vec<Name> = names.map(|name| Name::read(name, &type_url)).collect();
        let opening = Opening {
            dialect: Dialect::Sotw,
            service: Some(type_url.clone()),
            nonce_prefix: 0,
        };
        let mut server = Server::new(settings, opening);
        server.handle_sotw(&asked, answers, now)?;
        Ok(Self {
            server,
            type_url,
            version,
            names: if all { Vec::new() } else { names },
        })
    }

    /// The next thing that it wants.
    pub fn poll_want(&mut self) -> Option<Want> {
        self.server.poll_want()
    }

    /// The stream that it would be.
    #[must_use]
    pub const fn server(&self) -> &Server {
        &self.server
    }

    /// What is polled.
    #[must_use]
    pub const fn type_url(&self) -> &TypeUrl {
        &self.type_url
    }

    /// Looks up what the client sees with what it says of itself; before each question for the answer.
    pub fn look(&mut self, sight: &Sight, answers: &impl Answers) {
        self.server.choose(sight, answers);
    }

    /// What is to be said now. What is not known is waited for, and at the `last` moment left out where a client does not take
    /// that for a removal (B-16).
    #[must_use]
    pub fn answer<'a>(&'a self, sight: &'a Sight, last: bool) -> PollAnswer<'a> {
        let found = PollContent::of(self.server.type_sight(&self.type_url, sight), &self.names);
        let partial = last && !self.type_url.traits().full_state && found.resources().next().is_some();
        if (!found.open || partial) && found.version().to_string() != self.version {
            // H-02: whatever else the client has.
            PollAnswer::News(found)
        } else if found.open {
            PollAnswer::Open
        } else {
            PollAnswer::Nothing
        }
    }
}

impl<'a> PollContent<'a> {
    /// What is known of these names; without names, of all that there is.
    fn of(type_sight: TypeSight<'a>, names: &'a [Name]) -> Self {
        let mut found = Self {
            all: None,
            named: BTreeMap::new(),
            open: false,
        };
        if names.is_empty() {
            // H-06. B-20: a short state is no answer.
            found.all = type_sight
                .wildcard()
                .map(|state| &**state)
                .filter(|state| state.complete());
            found.open = found.all.is_none();
        }
        for name in names {
            match type_sight.known(name) {
                Some(Known::Present(resource)) => drop(found.named.insert(resource.name(), resource)),
                Some(Known::Absent(_)) => {}
                None if name.is_collection() => {
                    let members = type_sight.members(name).map(|member| {
                        let chosen = type_sight.resource(member.name());
                        (member.name(), chosen.unwrap_or(member))
                    });
                    let before = found.named.len();
                    found.named.extend(members);
                    found.open |= found.named.len() == before;
                }
                None => found.open = true,
            }
        }
        found
    }

    /// K-09: the version of exactly this set, as on a stream.
    #[must_use]
    pub fn version(&self) -> Version {
        let all = self.all.map_or(Version::EMPTY, State::sum);
        self.named
            .values()
            .fold(all, |sum, resource| sum.plus(resource.version()))
    }

    /// All of it.
    pub fn resources(&self) -> impl Iterator<Item = &'a Arc<Resource>> {
        let all = self.all.into_iter().flat_map(State::resources);
        all.chain(self.named.values().copied())
    }
}
