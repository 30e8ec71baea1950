// SPDX-License-Identifier: Apache-2.0
//! One stream of a client: the part of the arriving response that was read so far, and what must not come twice on a stream.
//! Knows nothing of sockets and other streams.

use std::collections::HashSet;

use xxhash_rust::xxh3::{Xxh3, xxh3_64, xxh3_128};

use super::arrival::{Arrival, Eye};
use super::subscription::Subscription;
use crate::fleet::violation::Violation;
use crate::origin::ledger::Mark;
use crate::wire::kind::{Dialect, Kind};
use crate::wire::text;
use crate::wire::{self, Level, Piece, Unit};

/// One stream, of one type or aggregated.
#[derive(Debug)]
pub(crate) struct Lane {
    pub(crate) dialect: Dialect,
    /// The type of the stream; none for all types.
    pub(crate) kind: Option<Kind>,
    /// B-03, C-01: no nonce comes twice on a stream.
    nonces: HashSet<u64>,
    /// SotW: the last version of each type, hashed.
    versions: [Option<u64>; Kind::ALL.len()],
    /// The nonce and the version to repeat with the next request, for each type.
    pub(crate) last: [Option<Box<(String, String)>>; Kind::ALL.len()],
    pub(crate) asked: bool,
    response: Response,
}

/// The part of a response that has arrived.
#[derive(Debug, Default)]
struct Response {
    nonce: String,
    version: String,
    kind: Option<Kind>,
    /// The type of its resources.
    of: Option<Kind>,
    removed: Vec<Box<[u8]>>,
    name: Vec<u8>,
    resource_version: Vec<u8>,
    any: Option<Kind>,
    body: Body,
}

/// The part of a body that has arrived.
#[derive(Default)]
struct Body {
    /// Whether the resource has a body.
    seen: bool,
    hash: u128,
    /// The hash so far, if the body comes in pieces.
    hasher: Option<Box<Xxh3>>,
    /// The start of the body, until its name is known.
    head: Vec<u8>,
}

/// The result of a complete response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) kind: Kind,
    pub(crate) nonce: String,
    pub(crate) version: String,
    /// How many resources it named, including removals.
    pub(crate) named: u32,
    /// How many measured changes it brought.
    pub(crate) delivered: u64,
    pub(crate) bytes: usize,
}

/// The name of a body must be within so many bytes.
const HEAD_BYTES_MAX: usize = 4096;

impl Lane {
    pub(crate) fn new(dialect: Dialect, kind: Option<Kind>) -> Self {
        Self {
            dialect,
            kind,
            nonces: HashSet::new(),
            versions: [None; Kind::ALL.len()],
            last: [const { None }; Kind::ALL.len()],
            asked: false,
            response: Response::default(),
        }
    }

    /// Notes the versions that the client accepted on an earlier stream, which its first requests name.
    pub(crate) fn bring(&mut self, accepted: &[Option<Box<str>>; Kind::ALL.len()]) {
        for (last, version) in self.last.iter_mut().zip(accepted) {
            *last = version.as_ref().map(|it| Box::new((String::new(), it.to_string())));
        }
    }

    /// To be called when other names are asked for: a name that was dropped and is asked for again comes with the version that the
    /// same names had before.
    pub(crate) fn forget_version(&mut self, kind: Kind) {
        if let Some(version) = self.versions.get_mut(kind as usize) {
            *version = None;
        }
    }

    /// Takes one unit of the stream. After the last unit of a response it returns the result.
    pub(crate) fn handle(
        &mut self,
        unit: &Unit<'_>,
        subscriptions: &mut [Subscription],
        eye: &mut Eye<'_>,
    ) -> Result<Option<Answer>, Violation> {
        let response = &mut self.response;
        match unit {
            Unit::Body(piece) => {
                let whole = learns(subscriptions);
                response.body.take(piece, self.dialect, whole);
            }
            Unit::Field(Level::Any, 1, bytes) => {
                response.any = Some(Kind::of(bytes).ok_or_else(|| Violation::WrongType(text(bytes)))?);
            }
            Unit::Field(Level::Resource, 1, bytes) => response.resource_version.extend_from_slice(bytes),
            Unit::Field(Level::Resource, 3, bytes) => response.name.extend_from_slice(bytes),
            Unit::Field(Level::Response, 1, bytes) => response.version = text(bytes),
            Unit::Field(Level::Response, 4, bytes) => {
                response.kind = Some(Kind::of(bytes).ok_or_else(|| Violation::WrongType(text(bytes)))?);
            }
            Unit::Field(Level::Response, 5, bytes) => response.nonce = text(bytes),
            Unit::Field(Level::Response, 6, name) if self.dialect == Dialect::Delta => {
                response.removed.push((*name).into());
            }
            Unit::Field(..) => {}
            Unit::Resource => self.resource(subscriptions, eye)?,
            Unit::End(bytes) => return self.finish(*bytes, subscriptions, eye).map(Some),
        }
        Ok(None)
    }

    fn resource(&mut self, subscriptions: &mut [Subscription], eye: &mut Eye<'_>) -> Result<(), Violation> {
        let response = &mut self.response;
        let kind = response.any.take();
        let body = &mut response.body;
        let (name, version) = match self.dialect {
            Dialect::Delta => (response.name.as_slice(), Some(response.resource_version.as_slice())),
            Dialect::Sotw => (wire::first_field(&body.head).unwrap_or_default(), None),
        };
        let kind = kind.ok_or_else(|| Violation::NoBody(text(name)))?;
        // istiod gives resources no version, and Envoy does not miss it: what differs is then known by its content.
        let version = version.filter(|version| !version.is_empty());
        if version.is_none() && self.dialect == Dialect::Delta && !learns(subscriptions) {
            return Err(Violation::NoVersion);
        }
        let kept = &body.head;
        // every resource is of the response's type.
        if *response.of.get_or_insert(kind) != kind {
            return Err(Violation::WrongType(kind.type_url().to_owned()));
        }
        let hash = if body.seen { body.hash } else { xxh3_128(&[]) };
        let arrival = Arrival {
            name,
            version,
            mark: Mark::Bytes(hash),
            body: kept,
        };
        subscription(subscriptions, kind)?.handle(arrival, eye)?;
        response.name.clear();
        response.resource_version.clear();
        body.seen = false;
        body.head.clear();
        Ok(())
    }

    fn finish(
        &mut self,
        bytes: usize,
        subscriptions: &mut [Subscription],
        eye: &mut Eye<'_>,
    ) -> Result<Answer, Violation> {
        let response = &mut self.response;
        let kind = response
            .kind
            .take()
            .ok_or_else(|| Violation::WrongType(String::new()))?;
        let of = response.of.take();
        if of.is_some_and(|of| of != kind) || self.kind.is_some_and(|own| own != kind) {
            return Err(Violation::WrongType(kind.type_url().to_owned()));
        }
        let (nonce, version) = (
            std::mem::take(&mut response.nonce),
            std::mem::take(&mut response.version),
        );
        if nonce.is_empty() || !self.nonces.insert(xxh3_64(nonce.as_bytes())) {
            return Err(Violation::Nonce(nonce));
        }
        let subscription = subscription(subscriptions, kind)?;
        for name in response.removed.drain(..) {
            subscription.handle_removal(&name, eye)?;
        }
        if self.dialect == Dialect::Sotw && kind.full_state() {
            subscription.handle_full(eye)?;
        }
        let named = subscription.count;
        let (changed, delivered) = subscription.finish();
        if self.dialect == Dialect::Sotw {
            // B-04: a different content has a different version.
            if version.is_empty() {
                return Err(Violation::NoVersion);
            }
            let hash = xxh3_64(version.as_bytes());
            let last = self.versions.get_mut(kind as usize);
            if let Some(last) = last
                && last.replace(hash) == Some(hash)
                && changed
            {
                return Err(Violation::SameVersion(version));
            }
        }
        eye.tally.responses += 1;
        eye.tally.coalesced += delivered.saturating_sub(1);
        Ok(Answer {
            kind,
            nonce,
            version,
            named,
            delivered,
            bytes,
        })
    }
}

impl std::fmt::Debug for Body {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Body")
            .field("seen", &self.seen)
            .finish_non_exhaustive()
    }
}

impl Body {
    fn take(&mut self, piece: &Piece<'_>, dialect: Dialect, whole: bool) {
        self.seen = true;
        if piece.first && piece.last {
            self.hash = xxh3_128(piece.bytes);
        } else {
            let hasher = self.hasher.get_or_insert_default();
            hasher.update(piece.bytes);
            if piece.last {
                self.hash = hasher.digest128();
                // Large bodies are rare and there are many clients, so the hasher's memory is freed.
                self.hasher = None;
            }
        }
        if whole {
            self.head.extend_from_slice(piece.bytes);
        } else if dialect == Dialect::Sotw
            && self.head.len() < HEAD_BYTES_MAX
            && wire::first_field(&self.head).is_none()
        {
            let room = HEAD_BYTES_MAX - self.head.len();
            // If the name comes in one piece, it is all that is needed.
            let wanted = wire::first_field(piece.bytes).map_or(room, |name| name.len() + 16);
            let bytes = piece.bytes.get(..wanted.min(room).min(piece.bytes.len()));
            self.head.extend_from_slice(bytes.unwrap_or_default());
        }
    }
}

pub(super) fn subscription(subscriptions: &mut [Subscription], kind: Kind) -> Result<&mut Subscription, Violation> {
    subscriptions
        .iter_mut()
        .find(|subscription| subscription.kind() == kind)
        .ok_or_else(|| Violation::WrongType(kind.type_url().to_owned()))
}

/// Whether resources are learned as they come, because the server is not this program's.
fn learns(subscriptions: &[Subscription]) -> bool {
    subscriptions.iter().any(|it| it.ledger.is_learning())
}
