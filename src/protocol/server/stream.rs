//! One client stream: its types, the order between them, and its end.
//!
//! Owns the stream's node, nonces, subscriptions and gates. Knows nothing of transports, tasks and other clients.

use std::sync::Arc;
use std::time::Instant;

use super::fate::Fate;
use super::gates::Gate;
use super::name_faults::{NameBound, NameFault, NameFaults};
use super::nonce::Nonces;
use super::subscription::Subscription;
use crate::end::{Code, End};
use crate::settings::StreamSettings;
use identity::Identity;
use xds::{Access, Answers, Authorities, Cut, Dialect, Dirty, Node, Rights, Sight, Status, Target, TypeUrl, Want};

/// One client stream.
///
/// - A, facts: `node`, `status`, `names`, `expired_gates`, `is_done`.
/// - B, inputs: `handle_sotw`, `handle_delta` (or slice by slice), `handle_acknowledgement`, `handle_dirty`, `handle_timeout`,
///   `lighten`.
/// - D, outputs: `poll_want` until `None`, before the cut is read; then `poll_response` until `None`, whenever the transport
///   can take more; then `poll_end` and `poll_timeout`.
#[derive(Debug)]
pub struct Server {
    pub(super) settings: Arc<StreamSettings>,
    pub(super) dialect: Dialect,
    pub(super) service: Option<TypeUrl>,
    pub(super) nonces: Nonces,
    pub(super) node: Option<Arc<Node>>,
    /// Who the client is; until its first request.
    pub(super) stranger: Option<Box<Identity>>,
    pub(super) polls: bool,
    /// The rules by which its rights were found out.
    pub(super) access: Arc<Access>,
    /// S-01: what the client may have; `None`: everything.
    pub(super) rights: Option<Arc<Rights>>,
    /// The types, in the order in which they are sent (D-02).
    pub(super) types: Vec<Subscription>,
    /// Closed while a route could overtake its cluster.
    pub(super) additions: Gate,
    /// Closed while a cluster could go before its routes.
    pub(super) removals: Gate,
    /// How often one of them opened by itself.
    pub(super) expired_gates: u32,
    pub(super) sent: u64,
    /// Whether nothing is left to send until there is input other than an acknowledgement.
    pub(super) done: bool,
    /// What ends the stream, if that is not its client.
    pub(super) fate: Option<Box<Fate>>,
}

/// How a stream begins.
#[derive(Clone, Debug)]
pub struct Opening {
    /// The stream's dialect.
    pub dialect: Dialect,
    /// The type of a per-type service; `None` for the aggregated service.
    pub service: Option<TypeUrl>,
    /// The prefix that makes the nonces of this stream unlike those of any other (K-11).
    pub nonce_prefix: u32,
    /// What the relay has checked about the client.
    pub identity: Identity,
    /// Whether it is a poll or a unary call.
    pub polls: bool,
}

impl Server {
    /// Creates a stream before its first request.
    #[must_use]
    pub fn new(settings: Arc<StreamSettings>, opening: Opening) -> Self {
        Self {
            access: settings.access.clone(),
            settings,
            dialect: opening.dialect,
            service: opening.service,
            nonces: Nonces::new(opening.nonce_prefix),
            node: None,
            stranger: Some(Box::new(opening.identity)),
            polls: opening.polls,
            rights: None,
            types: Vec::new(),
            additions: Gate::default(),
            removals: Gate::default(),
            expired_gates: 0,
            sent: 0,
            done: false,
            fate: None,
        }
    }

    /// Returns the client's node; known after the first request.
    #[must_use]
    pub const fn node(&self) -> Option<&Arc<Node>> {
        self.node.as_ref()
    }

    /// Returns the status of each type.
    pub fn status(&self) -> impl Iterator<Item = (&TypeUrl, Status)> {
        self.types
            .iter()
            .map(|subscription| (&subscription.type_url, subscription.status()))
    }

    /// Returns how often a gate opened by itself.
    #[must_use]
    pub fn expired_gates(&self) -> u64 {
        self.expired_gates.into()
    }

    /// K-21: returns how many entries are kept for this client: what it wants, what it is owed, and what it has not acknowledged
    /// or has rejected.
    #[must_use]
    pub fn kept(&self) -> usize {
        self.types.iter().map(Subscription::kept).sum()
    }

    /// Returns the types to which the client is subscribed.
    pub fn subscribed(&self) -> impl Iterator<Item = &TypeUrl> {
        let subscribed = self.types.iter().filter(|subscription| !subscription.wants_nothing());
        subscribed.map(|subscription| &subscription.type_url)
    }

    /// Returns how many names the client asks for, members of collections included.
    #[must_use]
    pub fn names(&self) -> usize {
        self.types.iter().map(Subscription::count).sum()
    }

    /// Returns how many responses were sent.
    #[must_use]
    pub const fn sent(&self) -> u64 {
        self.sent
    }

    /// The content of these names may have changed.
    pub fn handle_dirty(&mut self, type_url: &TypeUrl, dirty: Dirty) {
        self.done = false;
        if let Ok(at) = self.position(type_url)
            && let Some(subscription) = self.types.get_mut(at)
        {
            subscription.handle_dirty(dirty);
        }
    }

    /// The time of `poll_timeout` has come. Returns the end of the stream, if it must end.
    pub fn handle_timeout(&mut self, sight: &Sight, now: Instant) -> Option<End> {
        self.done = false;
        let bound = self.settings.timers.unanswered;
        for gate in [&mut self.additions, &mut self.removals] {
            gate.handle_timeout(self.settings.timers.order_gate, now);
        }
        for subscription in &mut self.types {
            subscription.cold.let_on(now);
            if !subscription.asked.waive(bound, now) {
                continue;
            }
            let type_url = &subscription.type_url;
            // G-18: a client that was sent nothing may find another server; one that was sent something stays. Clients of gRPC
            // leave all the same if that server is lost (`handle_loss`).
            let hopeless = subscription.hopeless(sight).filter(|_| self.sent == 0);
            if let Some(name) = hopeless {
                return Some(End::unanswered(type_url, bound, sight.reason(name)));
            }
        }
        self.handle_loss(sight, now)
    }

    /// Returns everything that is wanted under one of the `served` authorities; `None`: what is requested together with old-style
    /// names.
    pub fn wants<'a>(&'a self, authority: Option<&'a str>, served: &'a Authorities) -> impl Iterator<Item = Want> + 'a {
        let all = move |subscription: &'a Subscription| {
            let wants = move |target: Target| subscription.wants_of(target);
            subscription.targets(authority, served).flat_map(wants)
        };
        self.types.iter().flat_map(all)
    }

    /// Returns whether a view knows nothing of something that is wanted under an authority (G-03).
    #[must_use]
    pub fn lacks(&self, authority: Option<&str>, served: &Authorities, cut: &Cut) -> bool {
        let lacks = |subscription: &Subscription| subscription.lacks(authority, served, cut);
        self.types.iter().any(lacks)
    }

    /// Returns whether a view's server has answered, on its present stream, for every type that is wanted under an authority.
    #[must_use]
    pub fn is_fresh(&self, authority: Option<&str>, served: &Authorities, cut: &Cut) -> bool {
        self.types.iter().all(|subscription| {
            let answered = cut.slot(&subscription.type_url).is_some_and(|slot| slot.answered);
            answered || subscription.targets(authority, served).next().is_none()
        })
    }

    /// From now on, the names of an authority are read from another view. What differs there counts as a change, and nothing else
    /// does (G-11).
    pub fn handle_moved(&mut self, now: Instant) {
        self.done = false;
        self.types.iter_mut().for_each(|one| one.handle_moved(now));
    }

    /// Returns the next interest that begins or ends.
    pub fn poll_want(&mut self) -> Option<Want> {
        self.types.iter_mut().find_map(Subscription::poll_want)
    }

    /// returns the type of a request.
    fn resolve(&self, text: &str) -> Result<TypeUrl, End> {
        match &self.service {
            Some(service) if text.is_empty() => Ok(service.clone()),
            None if text.is_empty() => Err(End::invalid(
                "type_url is empty; a request on an aggregated stream must name its type",
            )),
            Some(service) => {
                let asked = self.settings.types.resolve(text);
                if asked == *service {
                    return Ok(asked);
                }
                Err(End::invalid(format!(
                    "type_url `{text}` is not served on a stream of the {service} service"
                )))
            }
            None => Ok(self.settings.types.resolve(text)),
        }
    }

    pub(super) fn subscription(
        &mut self,
        text: &str,
        answers: &impl Answers,
        now: Instant,
    ) -> Result<&mut Subscription, End> {
        self.done = false;
        // Nearly every request has a type that the stream has, spelled as the relay spells it.
        let known = self.types.iter().position(|one| one.type_url.url() == text);
        let at = known.map_or_else(|| self.place(text, answers, now), Ok)?;
        let found = self.types.get_mut(at);
        found.ok_or_else(|| End::new(Code::Internal, "the relay lost the subscription of this type"))
    }

    fn place(&mut self, text: &str, answers: &impl Answers, now: Instant) -> Result<usize, End> {
        let type_url = self.resolve(text)?;
        match self.position(&type_url) {
            Ok(at) => Ok(at),
            Err(at) => {
                let max = self.settings.limits.types_per_stream;
                if max > 0 && self.types.len() >= max {
                    let what = format_args!("type {type_url} does not fit: the stream already has {max} types");
                    return Err(End::limit("types_per_stream", what));
                }
                let rights = self.rights_of(&type_url, answers)?;
                let features = self.node.as_ref().map_or_else(Default::default, |node| node.features);
                let subscription = Subscription::new(type_url, self.dialect, features, rights, now);
                if self.types.len() == self.types.capacity() {
                    // A client with a second type nearly always has four. Growth by one at a time would leave holes in the heap,
                    // in sizes that hardly anything else uses.
                    self.types.reserve_exact(if self.types.len() == 1 { 3 } else { 1 });
                }
                self.types.insert(at, subscription);
                Ok(at)
            }
        }
    }

    /// Checks the number of names in a request. B-32: names over the returned bound are noted as `faults`, and must be skipped.
    pub(super) fn check_names<'a>(
        &self,
        names: impl Iterator<Item = &'a String>,
        faults: &mut NameFaults,
    ) -> Result<NameBound, End> {
        let limits = &self.settings.limits;
        let bound = NameBound(limits.name_bytes);
        let mut count = 0;
        for name in names {
            count += 1;
            if !bound.admits(name) {
                faults.note(NameFault::Long, name);
            }
        }
        if limits.names_per_stream > 0 && count > limits.names_per_stream {
            return Err(End::limit(
                "names_per_stream",
                format_args!("{count} names in one request"),
            ));
        }
        Ok(bound)
    }

    pub(super) fn position(&self, type_url: &TypeUrl) -> Result<usize, usize> {
        self.types
            .binary_search_by(|subscription| subscription.type_url.cmp(type_url))
    }

    /// Checks that the client has no more names than its limit and `spare` allow.
    pub(super) fn check_count(&self, spare: usize) -> Result<(), End> {
        let count = self.names();
        let max = self.settings.limits.names_per_stream;
        if max > 0 && count > max.saturating_add(spare) {
            return Err(End::limit(
                "names_per_stream",
                format_args!("{count} names on one stream"),
            ));
        }
        Ok(())
    }

    /// K-21: a client that drops names faster than it acknowledges responses is owed an answer for each of them (C-08), so these
    /// are limited.
    pub(super) fn check_owed(&self) -> Result<(), End> {
        let max = self.settings.limits.names_per_stream;
        let owed: usize = self.types.iter().map(|subscription| subscription.owed.len()).sum();
        if max > 0 && owed > max.saturating_mul(2) {
            return Err(End::limit(
                "names_per_stream",
                format_args!("{owed} names wait for an answer"),
            ));
        }
        Ok(())
    }
}
