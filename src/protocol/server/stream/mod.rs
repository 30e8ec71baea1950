// SPDX-License-Identifier: Apache-2.0
//! One client stream: its types, the order between them, and its end.
//!
//! Owns the stream's nonces, subscriptions and gates. Knows nothing of transports, tasks and other clients.

mod loss;
mod naming;
mod order;
mod requests;

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::end::{Code, End};
use crate::server::caller::{Caller, Opening};
use crate::server::gates::OrderGate;
use crate::server::name_faults::NameFaults;
use crate::server::nonce::Nonces;
use crate::server::response::{Receipt, ReceiptKind, Told};
use crate::server::session::Subscription;
use crate::settings::StreamSettings;
use classes::Node;
use loss::Fate;
pub use requests::Progress;
use xds::{
    Access, Answers, ClientType, Cut, Depth, Dirty, Kind, Known, Name, Owners, Resource, Sight, Status, TypeSight,
    TypeUrl, Want,
};

/// One client stream.
///
/// - A, facts: `node`, `status`, `names`, `expired_gates`, `is_done`.
/// - B, inputs: `handle` (or slice by slice: `begin`, `go_on`, `finish`), `handle_acknowledgement`, `handle_dirty`, `handle_timeout`.
/// - D, outputs: `poll_want` until `None`, before the cut is read; then `poll_response` until `None`, whenever the transport
///   can take more, and again in the next turn if `is_short`; then `poll_end` and `poll_timeout`.
#[derive(Debug)]
pub struct Server {
    settings: Arc<StreamSettings>,
    caller: Caller,
    nonces: Nonces,
    /// The types, in the order in which they are sent (D-02).
    types: Vec<Subscription>,
    /// Closed while a route could overtake its cluster.
    additions: OrderGate,
    /// Closed while a cluster could go before its routes.
    removals: OrderGate,
    /// How often a gate opened by itself.
    expired_gates: u32,
    rest: LeftToSend,
    /// What ends the stream, if that is not its client.
    fate: Option<Box<Fate>>,
}

/// What a stream has left to send, as far as that was seen when it was last polled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LeftToSend {
    /// There may be more when others had their turn.
    More,
    /// There may be more when there is input.
    Waits,
    /// There is nothing until there is input other than an acknowledgement.
    Nothing,
}

impl Server {
    /// Creates a stream before its first request.
    #[must_use]
    pub fn new(settings: Arc<StreamSettings>, opening: Opening) -> Self {
        let nonces = Nonces::new(opening.nonce_prefix);
        Self {
            caller: Caller::new(opening, settings.access.clone()),
            settings,
            nonces,
            types: Vec::new(),
            additions: OrderGate::default(),
            removals: OrderGate::default(),
            expired_gates: 0,
            rest: LeftToSend::Waits,
            fate: None,
        }
    }

    /// Returns the client's node; known after the first request.
    #[must_use]
    pub const fn node(&self) -> Option<&Arc<Node>> {
        self.caller.node()
    }

    /// Returns the status of each type.
    pub fn status(&self) -> impl Iterator<Item = (&TypeUrl, Status)> {
        self.types.iter().map(|one| (one.type_url(), one.status()))
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
        let subscribed = self.types.iter().filter(|one| !one.wants_nothing());
        subscribed.map(Subscription::type_url)
    }

    /// Returns how many names the client asks for, members of collections included, and how many versions it brought beside them.
    #[must_use]
    pub fn names(&self) -> usize {
        self.types.iter().map(Subscription::count).sum()
    }

    /// B-34: returns how many versions are kept that the client brought beside its names, and that no other client has.
    #[must_use]
    pub fn brought(&self) -> usize {
        self.types.iter().map(Subscription::brought).sum()
    }

    /// Returns how many responses were sent.
    #[must_use]
    pub const fn sent(&self) -> u64 {
        self.nonces.given()
    }

    /// Returns each type as an operator sees it, or the one that is asked about: all but what the machine does not know.
    pub fn portraits(&self, sight: &Sight, depth: &Depth) -> impl Iterator<Item = ClientType> {
        let chosen = move |one: &&Subscription| depth.type_url().is_none_or(|only| one.type_url() == only);
        let chosen = self.types.iter().filter(chosen);
        chosen.map(move |one| one.portray(one.type_sight(sight), depth))
    }

    /// Returns each type of which the client may wait for something that nobody has answered, and since when.
    pub fn waiting(&self, sight: &Sight) -> impl Iterator<Item = (&TypeUrl, Instant)> {
        let since = move |one: &Subscription| one.waits_since(one.type_sight(sight));
        self.types
            .iter()
            .filter_map(move |one| Some((one.type_url(), since(one)?)))
    }

    /// Returns what is known of a type, as the client sees it.
    pub(crate) fn type_sight<'a>(&'a self, type_url: &'a TypeUrl, sight: &'a Sight) -> TypeSight<'a> {
        let found = self.types.iter().find(|one| one.type_url() == type_url);
        found.map_or_else(|| sight.type_sight(type_url), |one| one.type_sight(sight))
    }

    /// Finds out what the client sees of each type.
    pub(crate) fn look(&mut self, sight: &Sight, answers: &impl Answers) {
        self.types.iter_mut().for_each(|one| one.look_up(sight, answers));
    }

    /// The content of these names may have changed.
    pub fn handle_dirty(&mut self, type_url: &TypeUrl, dirty: Dirty) {
        self.rest = LeftToSend::Waits;
        if let Some(one) = self.of_type(type_url) {
            one.handle_dirty(dirty);
        }
    }

    /// Returns everything that is wanted of an owner; `None`: of the servers at the top.
    pub fn wants<'a>(&'a self, owner: Option<&'a str>, owners: &'a Owners) -> impl Iterator<Item = Want> + 'a {
        self.wants_if(move |type_url, name| owners.of(type_url, name) == owner)
    }

    /// Returns everything that is wanted and has another owner now than before.
    pub fn wants_moved<'a>(&'a self, before: &'a Owners, now: &'a Owners) -> impl Iterator<Item = Want> + 'a {
        self.wants_if(|type_url, name| before.of(type_url, name) != now.of(type_url, name))
    }

    /// Returns the next thing that the views must be told of what the client rejects.
    pub fn poll_stance(&mut self) -> Option<Told> {
        self.types.iter_mut().find_map(Subscription::poll_stance)
    }

    /// Older contents are there that may be sent in the place of what the client rejects of a name, the first one first. Those that lead to
    /// what is not there are left out.
    pub fn handle_older(&mut self, type_url: &TypeUrl, name: &Name, mut contents: Vec<Arc<Resource>>, sight: &Sight) {
        self.rest = LeftToSend::Waits;
        let lacks = |word: &str, name: &Name| {
            let of = TypeUrl::called(word);
            of.is_some_and(|of| matches!(sight.type_sight(&of).known(name), Some(Known::Absent(_))))
        };
        contents.retain(|content| {
            content.references(type_url.kind()).is_none_or(|named| {
                let clusters = named.clusters.iter().any(|name| lacks("cds", name));
                !clusters && !named.routes.iter().any(|name| lacks("rds", name))
            })
        });
        if let Some(one) = self.of_type(type_url) {
            one.offer_older(name, &contents);
        }
    }

    /// What the client uses of names that it rejects belongs to another class of clients: nobody else is told.
    pub fn forget_older(&mut self) {
        self.types.iter_mut().for_each(Subscription::forget_older);
    }

    /// If the client has accepted clusters after it had rejected some: listeners and routes may have been rejected because they lead there
    /// (K-37).
    pub(super) fn retry(&mut self, type_url: &TypeUrl, receipt: &ReceiptKind) {
        let mends = matches!(receipt, ReceiptKind::Ack(Some(changed)) if changed.mends);
        if mends && type_url.kind().names_endpoints() {
            let gated = self.types.iter_mut().filter(|one| one.kind().gated());
            gated.for_each(Subscription::try_rejected);
        }
    }

    fn wants_if<'a>(
        &'a self,
        counts: impl Fn(&TypeUrl, Option<&Name>) -> bool + Copy + 'a,
    ) -> impl Iterator<Item = Want> + 'a {
        self.types.iter().flat_map(move |one| one.wants_if(counts))
    }

    /// Returns whether a view knows nothing of something that is wanted of an owner (G-03).
    #[must_use]
    pub fn lacks(&self, owner: Option<&str>, owners: &Owners, cut: &Cut) -> bool {
        self.types.iter().any(|one| one.lacks(owner, owners, cut))
    }

    /// Returns whether a view's server has answered, on its present stream, for every type that is wanted of an owner.
    #[must_use]
    pub fn is_fresh(&self, owner: Option<&str>, owners: &Owners, cut: &Cut) -> bool {
        self.types.iter().all(|one| {
            let answered = cut.slot(one.type_url()).is_some_and(|slot| slot.answered);
            answered || one.asked_of(owner, owners).next().is_none()
        })
    }

    /// From now on, the names of an owner are read from another view. What differs there counts as a change, and nothing else
    /// does (G-11).
    pub fn handle_moved(&mut self, now: Instant) {
        self.rest = LeftToSend::Waits;
        self.types.iter_mut().for_each(|one| one.handle_moved(now));
    }

    /// Returns the next interest that begins or ends.
    pub fn poll_want(&mut self) -> Option<Want> {
        self.types.iter_mut().find_map(Subscription::poll_want)
    }

    /// Whether the client may have anything of the type.
    #[must_use]
    pub fn may_have(&self, type_url: &TypeUrl) -> bool {
        self.caller.may_have(type_url)
    }

    /// Whether the client's rights come from these rules.
    #[must_use]
    pub fn is_under(&self, access: &Arc<Access>) -> bool {
        self.caller.is_under(access)
    }

    /// S-07: these are the rules from now on.
    ///
    /// # Errors
    /// The rules do not admit the client: the stream must end.
    pub fn handle_access(&mut self, access: Arc<Access>, answers: &impl Answers, now: Instant) -> Result<(), End> {
        if self.caller.handle_access(access, answers)? {
            self.rest = LeftToSend::Waits;
            for one in &mut self.types {
                let rights = self.caller.rights_of(one.type_url(), answers)?;
                one.handle_rights(rights, now);
            }
        }
        Ok(())
    }

    /// Takes a delta request that only acknowledges a response, and that was read without decoding it. Returns `None`, without
    /// any effect, if no such response is on its way.
    pub fn handle_acknowledgement(&mut self, type_url: &[u8], nonce: &[u8]) -> Option<Receipt> {
        let number = self.nonces.number(nonce)?;
        let one = self
            .types
            .iter_mut()
            .find(|one| one.type_url().url().as_bytes() == type_url)?;
        let kind = one.acknowledge(number)?;
        let type_url = one.type_url().clone();
        self.retry(&type_url, &kind);
        Some(Receipt {
            type_url,
            kind,
            faults: NameFaults::default(),
        })
    }

    /// Returns whether the stream had nothing more to send when it was last polled, and will have nothing when the responses on
    /// their way are acknowledged. It then need not be polled before there is other input.
    #[must_use]
    pub const fn is_done(&self) -> bool {
        matches!(self.rest, LeftToSend::Nothing)
    }

    /// Whether names are left that the last poll did not look at: poll again when others had their turn.
    #[must_use]
    pub const fn is_short(&self) -> bool {
        matches!(self.rest, LeftToSend::More)
    }

    /// Returns when `handle_timeout` and `poll_response` must be called again at the latest.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let timers = &self.settings.timers;
        let of_types = self.types.iter().filter_map(|one| one.poll_timeout(timers.unanswered));
        let gates = [&self.additions, &self.removals].map(|gate| gate.poll_timeout(timers.order_gate));
        of_types
            .chain(gates.into_iter().flatten())
            .chain(self.loss_timeout())
            .min()
    }

    /// The time of `poll_timeout` has come. `poll_response` then finds whether the stream must end.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.rest = LeftToSend::Waits;
        let bound = self.settings.timers.unanswered;
        for gate in [&mut self.additions, &mut self.removals] {
            gate.handle_timeout(self.settings.timers.order_gate, now);
        }
        for one in &mut self.types {
            one.handle_timeout(bound, now);
        }
    }

    pub(super) fn bound(&self) -> Duration {
        self.settings.timers.order_gate
    }

    fn of_type(&mut self, type_url: &TypeUrl) -> Option<&mut Subscription> {
        let at = self.position(type_url).ok()?;
        self.types.get_mut(at)
    }

    fn of_kind(&self, is: impl Fn(Kind) -> bool) -> impl Iterator<Item = &Subscription> {
        self.types.iter().filter(move |one| is(one.kind()))
    }

    fn position(&self, type_url: &TypeUrl) -> Result<usize, usize> {
        self.types.binary_search_by(|one| one.type_url().cmp(type_url))
    }

    fn subscription(&mut self, text: &str, answers: &impl Answers, now: Instant) -> Result<&mut Subscription, End> {
        self.rest = LeftToSend::Waits;
        // Nearly every request has a type that the stream has, spelled as the relay spells it.
        let known = self.types.iter().position(|one| one.type_url().url() == text);
        let at = known.map_or_else(|| self.place(text, answers, now), Ok)?;
        let found = self.types.get_mut(at);
        found.ok_or_else(|| End::new(Code::Internal, "the relay lost the subscription of this type"))
    }

    fn place(&mut self, text: &str, answers: &impl Answers, now: Instant) -> Result<usize, End> {
        let type_url = self.caller.resolve(text, &self.settings.types)?;
        let at = match self.position(&type_url) {
            Ok(at) => return Ok(at),
            Err(at) => at,
        };
        let max = self.settings.limits.types_per_stream;
        if max > 0 && self.types.len() >= max {
            let what = format_args!("type {type_url} does not fit: the stream already has {max} types");
            return Err(End::limit("types_per_stream", what));
        }
        let rights = self.caller.rights_of(&type_url, answers)?;
        let one = Subscription::new(type_url, &self.caller, rights, now);
        if self.types.len() == self.types.capacity() {
            // A client with a second type nearly always has four. Growth by one at a time would leave holes in the heap, in sizes
            // that hardly anything else uses.
            self.types.reserve_exact(if self.types.len() == 1 { 3 } else { 1 });
        }
        self.types.insert(at, one);
        Ok(at)
    }
}
