// SPDX-License-Identifier: Apache-2.0
//! One poll: what the client has, what it wants, and what the relay answers.
//!
//! Owns two rules: the relay never answers with something it does not know, and a client whose version differs gets an answer.
//! Interest and limits are those of a stream: a poll is a stream with one request. Knows nothing of HTTP, JSON and how long a
//! client waits.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use super::server::NameBound;
use super::{End, NameFaults, Opening, Server, StreamSettings};
use identity::Identity;
use proto::envoy::service::discovery::v3::DiscoveryRequest;
use xds::{Answers, Dialect, Known, Name, Resource, Sight, State, TypeSight, TypeUrl, Version, Want};

/// One poll.
///
/// It is made from one request. The caller takes what the poll wants with `poll_want`. It calls `answer` whenever something may
/// have changed, and once more when the poll's time is over.
pub struct Poll {
    server: Server,
    type_url: TypeUrl,
    /// The version that the client has.
    version: String,
    /// The names that the client wants; `None`: all resources.
    names: Option<Vec<Name>>,
    faults: NameFaults,
}

/// The answer to a poll at one moment.
pub enum PollAnswer<'a> {
    /// The content differs from what the client has.
    News(PollContent<'a>),
    /// The client has the present content.
    Nothing,
    /// Not everything that the client wants is known.
    Open,
}

/// What the relay knows at one moment of what a client wants.
pub struct PollContent<'a> {
    /// All resources, if the client wants all.
    all: Option<&'a State>,
    /// The resources that the client wants by name.
    named: BTreeMap<&'a Name, &'a Arc<Resource>>,
    /// Whether something that the client wants is not known.
    open: bool,
}

impl Poll {
    /// A poll for this type.
    ///
    /// # Errors
    /// Fails for the same reasons that would end a stream.
    pub fn new(
        settings: Arc<StreamSettings>,
        identity: Identity,
        type_url: TypeUrl,
        mut asked: DiscoveryRequest,
        answers: &impl Answers,
        now: Instant,
    ) -> Result<Self, End> {
        // H-05: the relay knows nothing of the client but this request. H-01: the path names the type.
        let version = std::mem::take(&mut asked.version_info);
        asked.response_nonce = String::new();
        asked.error_detail = None;
        asked.type_url = type_url.url().to_owned();
        // H-06: no names means all names.
        if asked.resource_names.is_empty() {
            asked.resource_names.push(Name::WILDCARD.to_owned());
        }
        let all = asked.resource_names.iter().any(|name| name == Name::WILDCARD);
        // B-32: a name over the limit is not answered for.
        let bound = NameBound(settings.limits.name_bytes);
        let names = asked.resource_names.iter().filter(|name| bound.admits(name));
        let mut names: Vec<Name> = names.map(|name| Name::read(name, &type_url)).collect();
        // What is asked for twice, perhaps in two spellings, is looked up once.
        names.sort_unstable();
        names.dedup();
        let opening = Opening {
            dialect: Dialect::Sotw,
            service: Some(type_url.clone()),
            nonce_prefix: 0,
            identity,
            polls: true,
        };
        let mut server = Server::new(settings, opening);
        let faults = server.handle(asked, answers, now)?.faults;
        Ok(Self {
            server,
            type_url,
            version,
            names: (!all).then_some(names),
            faults,
        })
    }

    /// Returns the next thing that the poll wants.
    pub fn poll_want(&mut self) -> Option<Want> {
        self.server.poll_want()
    }

    /// Returns the machine of the stream that this poll stands for.
    pub const fn server(&self) -> &Server {
        &self.server
    }

    /// Returns what was wrong with single names.
    pub const fn faults(&self) -> &NameFaults {
        &self.faults
    }

    /// Returns the type that is polled.
    pub const fn type_url(&self) -> &TypeUrl {
        &self.type_url
    }

    /// Finds out what the client sees with its rights. Call it before each `answer`.
    pub fn look(&mut self, sight: &Sight, answers: &impl Answers) {
        self.server.look(sight, answers);
    }

    /// Returns the answer at this moment. The poll waits for what is not known. At the `last` moment it leaves that out, but only
    /// for types where a client does not take a missing resource for a removal (B-16).
    #[must_use]
    pub fn answer<'a>(&'a self, sight: &'a Sight, last: bool) -> PollAnswer<'a> {
        let partial = last && !self.type_url.traits().full_state;
        let type_sight = self.server.type_sight(&self.type_url, sight);
        let found = PollContent::of(type_sight, self.names.as_deref(), partial);
        let partial = partial && found.resources().next().is_some();
        if (!found.open || partial) && found.version().to_string() != self.version {
            // H-02: any other version gets the content, whatever the client has.
            PollAnswer::News(found)
        } else if found.open {
            PollAnswer::Open
        } else {
            PollAnswer::Nothing
        }
    }
}

impl<'a> PollContent<'a> {
    /// Collects what is known of these names; `None`: of all resources. Unless a part is wanted too, this ends with the first name of
    /// which nothing is known: there may be many names, and a poll looks often.
    fn of(type_sight: TypeSight<'a>, names: Option<&'a [Name]>, partial: bool) -> Self {
        let mut found = Self {
            all: None,
            named: BTreeMap::new(),
            open: false,
        };
        if names.is_none() {
            // H-06. B-20: an incomplete state is no answer.
            found.all = type_sight
                .wildcard()
                .map(|state| &**state)
                .filter(|state| state.complete());
            found.open = found.all.is_none();
        }
        for name in names.unwrap_or_default() {
            if found.open && !partial {
                break;
            }
            match type_sight.known(name) {
                Some(Known::Present(resource)) => drop(found.named.insert(resource.name(), resource)),
                Some(Known::Absent(_) | Known::Held(_)) => {}
                None if name.is_collection() => {
                    let members = type_sight.members(name).map(|member| {
                        let current = type_sight.resource(member.name());
                        (member.name(), current.unwrap_or(member))
                    });
                    let mut members = members.peekable();
                    found.open |= members.peek().is_none();
                    found.named.extend(members);
                }
                None => found.open = true,
            }
        }
        found
    }

    /// K-09: returns the version of exactly this set, as on a stream.
    pub fn version(&self) -> Version {
        let all = self.all.map_or(Version::EMPTY, State::sum);
        self.named
            .values()
            .fold(all, |sum, resource| sum.plus(resource.version()))
    }

    /// Returns all resources of the answer.
    pub fn resources(&self) -> impl Iterator<Item = &'a Arc<Resource>> {
        let all = self.all.into_iter().flat_map(State::resources);
        all.chain(self.named.values().copied())
    }
}
