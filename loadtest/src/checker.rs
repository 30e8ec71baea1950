//! Checks every response that one client gets against the ledger. It knows the client side of the protocol and nothing
//! of sockets; time is an argument.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Instant;

use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

use crate::arguments::Dialect;
use crate::held::Held;
use crate::ledger::{Content, Ledger};
use crate::response::Response;
use crate::tally::Tally;
use crate::violation::Violation;
use crate::want::Want;
use crate::wire::{self, Unit};

/// One client's view. Invariant: `held` says which content of each resource the server made the client hold, and
/// `complete` once it held everything it wants.
#[derive(Debug)]
pub(crate) struct Checker {
    dialect: Dialect,
    ledger: Arc<Ledger>,
    want: Want,
    /// Extras that it came to want later.
    also: Vec<u32>,
    held: Vec<Held>,
    present: u32,
    complete: bool,
    /// B-03, C-01: no nonce comes twice on a stream.
    nonces: HashSet<u64>,
    /// SotW: the last version, hashed.
    version: Option<u64>,
    response: Response,
}

/// What to tell the server after a response, and the client's owner.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) nonce: String,
    pub(crate) version: String,
    /// Whether this response was the one that made the client hold everything it wants.
    pub(crate) completed: bool,
    /// How many resources it named, those that are gone among them.
    pub(crate) named: u32,
}

impl Checker {
    pub(crate) fn new(dialect: Dialect, ledger: Arc<Ledger>, want: Want) -> Self {
        let resources = usize::try_from(ledger.all()).unwrap_or_default();
        Self {
            dialect,
            ledger,
            want,
            also: Vec::new(),
            held: vec![Held::default(); resources],
            present: 0,
            complete: false,
            nonces: HashSet::new(),
            version: None,
            response: Response::new(resources),
        }
    }

    /// The client asks for an extra too.
    pub(crate) fn want_also(&mut self, index: u32) {
        self.also.push(index);
    }

    /// The names of the extras that the client asked for.
    pub(crate) fn also(&self) -> impl Iterator<Item = String> {
        self.also.iter().map(|index| self.ledger.name(*index))
    }

    pub(crate) fn name(&self, index: u32) -> String {
        self.ledger.name(index)
    }

    /// A new stream begins: the versions of what the client holds.
    pub(crate) fn begin(&mut self) -> BTreeMap<String, String> {
        self.nonces.clear();
        self.response.clear();
        let held = self.held.iter().zip(0_u32..).filter(|(held, _)| held.is_present());
        held.filter_map(|(held, index)| {
            let serial = usize::try_from(held.serial()?).ok()?;
            let version = self
                .ledger
                .inspect(index, |history| history.get(serial)?.version().map(text))??;
            Some((self.ledger.name(index), version))
        })
        .collect()
    }

    /// Takes one unit of the stream, read at `now`. After the last of a response it says what to acknowledge.
    pub(crate) fn handle(
        &mut self,
        unit: &Unit<'_>,
        tally: &mut Tally,
        now: Instant,
    ) -> Result<Option<Answer>, Violation> {
        match (unit, self.dialect) {
            (Unit::Field(1, version), _) => self.response.version = text(version),
            (Unit::Field(2, resource), Dialect::Delta) => self.handle_delta(resource, tally, now)?,
            (Unit::Field(2, any), Dialect::Sotw) => self.handle_body(any, None, tally, now)?,
            (Unit::Field(4, type_url), _) => {
                self.check_type(type_url)?;
                self.response.typed = true;
            }
            (Unit::Field(5, nonce), _) => self.response.nonce = text(nonce),
            (Unit::Field(6, name), Dialect::Delta) => self.handle_removal(name, tally, now)?,
            (Unit::End, _) => return self.finish_response(tally, now).map(Some),
            (Unit::Field(..) | Unit::Number(_), _) => {}
        }
        Ok(None)
    }

    fn handle_delta(&mut self, resource: &[u8], tally: &mut Tally, now: Instant) -> Result<(), Violation> {
        let (mut name, mut version, mut any): (&[u8], &[u8], Option<&[u8]>) = (&[], &[], None);
        wire::fields(resource, |unit| match unit {
            Unit::Field(1, bytes) => version = bytes,
            Unit::Field(2, bytes) => any = Some(bytes),
            Unit::Field(3, bytes) => name = bytes,
            Unit::Field(..) | Unit::Number(_) | Unit::End => {}
        })?;
        let any = any.ok_or_else(|| Violation::NoBody(text(name)))?;
        if version.is_empty() {
            return Err(Violation::NoVersion);
        }
        self.handle_body(any, Some((name, version)), tally, now)
    }

    /// Checks one resource: `wrapper` is the name and the version of the delta resource around it.
    fn handle_body(
        &mut self,
        any: &[u8],
        wrapper: Option<(&[u8], &[u8])>,
        tally: &mut Tally,
        now: Instant,
    ) -> Result<(), Violation> {
        let (mut type_url, mut body): (&[u8], &[u8]) = (&[], &[]);
        wire::fields(any, |unit| match unit {
            Unit::Field(1, bytes) => type_url = bytes,
            Unit::Field(2, bytes) => body = bytes,
            Unit::Field(..) | Unit::Number(_) | Unit::End => {}
        })?;
        // every resource is of the response's type.
        self.check_type(type_url)?;
        let name = match wrapper {
            Some((name, _)) => name,
            None => match wire::field(body)? {
                Some((Unit::Field(1, name), _)) => name,
                _ => &[],
            },
        };
        let index = self.name_once(name)?;
        tally.resources += 1;
        let hash = xxh3_128(body);
        let ledger = Arc::clone(&self.ledger);
        let outcome = ledger.inspect(index, |history| {
            let Some(content) = history.iter().rev().find(|content| content.hash == Some(hash)) else {
                return Err(Violation::Foreign(text(name)));
            };
            if let Some((_, version)) = wrapper {
                check_version(content, version, history, name)?;
            }
            self.move_to(index, content, history, tally, now)
        });
        outcome.unwrap_or_else(|| Err(Violation::Unrequested(text(name))))
    }

    fn handle_removal(&mut self, name: &[u8], tally: &mut Tally, now: Instant) -> Result<(), Violation> {
        let index = self.name_once(name)?;
        self.remove(index, tally, now)
    }

    /// The client is told that a resource is gone: so it must be, after the content that the client holds.
    fn remove(&mut self, index: u32, tally: &mut Tally, now: Instant) -> Result<(), Violation> {
        let ledger = Arc::clone(&self.ledger);
        let held = self.held(index).serial();
        let outcome = ledger.inspect(index, |history| {
            let newest = history.iter().rev().find(|content| content.hash.is_none());
            match newest.filter(|content| Some(content.serial) >= held) {
                Some(content) => self.move_to(index, content, history, tally, now),
                None => Err(Violation::Lost(ledger.name(index))),
            }
        });
        outcome.unwrap_or(Ok(()))
    }

    /// The client now holds `content`.
    fn move_to(
        &mut self,
        index: u32,
        content: &Content,
        history: &[Arc<Content>],
        tally: &mut Tally,
        now: Instant,
    ) -> Result<(), Violation> {
        let before = self.held(index);
        let after = Held::of(content);
        if before == after {
            tally.repeated += 1;
            return Ok(());
        }
        if let Some(serial) = before.serial() {
            if serial > content.serial {
                return Err(Violation::Older(self.ledger.name(index)));
            }
            // What was skipped is as good as delivered, and as late as what replaced it.
            for passed in history
                .iter()
                .filter(|it| it.serial > serial && it.serial <= content.serial)
            {
                if passed.measured {
                    let taken = now.saturating_duration_since(passed.published);
                    tally.deliver(taken);
                    self.response.delivered += 1;
                }
                self.ledger.deliver(passed);
            }
        }
        self.present = self.present + u32::from(after.is_present()) - u32::from(before.is_present());
        if let Some(held) = usize::try_from(index).ok().and_then(|index| self.held.get_mut(index)) {
            *held = after;
        }
        self.response.changed = true;
        Ok(())
    }

    fn finish_response(&mut self, tally: &mut Tally, now: Instant) -> Result<Answer, Violation> {
        if !self.response.typed {
            return Err(Violation::WrongType(String::new()));
        }
        if self.response.nonce.is_empty() || !self.nonces.insert(xxh3_64(self.response.nonce.as_bytes())) {
            return Err(Violation::Nonce(self.response.nonce.clone()));
        }
        if self.dialect == Dialect::Sotw {
            self.finish_state(tally, now)?;
        }
        let completed = !self.complete && self.present == self.want.count(self.ledger.len());
        self.complete |= completed;
        tally.responses += 1;
        tally.coalesced += self.response.delivered.saturating_sub(1);
        let answer = Answer {
            nonce: std::mem::take(&mut self.response.nonce),
            version: std::mem::take(&mut self.response.version),
            completed,
            named: self.response.count,
        };
        self.response.clear();
        Ok(answer)
    }

    /// B-16: a full state takes away what it lacks. B-04: another content has another version.
    fn finish_state(&mut self, tally: &mut Tally, now: Instant) -> Result<(), Violation> {
        if self.ledger.kind().full_state() {
            for index in 0..self.ledger.all() {
                if self.held(index).is_present() && !self.response.has_named(index) {
                    self.remove(index, tally, now)?;
                }
            }
        }
        if self.response.version.is_empty() {
            return Err(Violation::NoVersion);
        }
        let version = xxh3_64(self.response.version.as_bytes());
        if self.response.changed && self.version == Some(version) {
            return Err(Violation::SameVersion(self.response.version.clone()));
        }
        self.version = Some(version);
        Ok(())
    }

    /// Whether the client holds the newest content of everything it wants, and nothing that is gone.
    pub(crate) fn check_final(&self) -> Result<(), Violation> {
        for index in (0..self.ledger.all()).filter(|index| self.wants(*index)) {
            let newest = self
                .ledger
                .inspect(index, |history| history.last().map(|content| Held::of(content)));
            if newest.flatten() != Some(self.held(index)) {
                return Err(Violation::Behind(self.ledger.name(index)));
            }
        }
        Ok(())
    }

    fn check_type(&self, type_url: &[u8]) -> Result<(), Violation> {
        if type_url == self.ledger.kind().type_url().as_bytes() {
            return Ok(());
        }
        Err(Violation::WrongType(text(type_url)))
    }

    /// The resource with this name, which the client wants and which this response names for the first time.
    fn name_once(&mut self, name: &[u8]) -> Result<u32, Violation> {
        let Some(index) = self.ledger.index(name).filter(|index| self.wants(*index)) else {
            return Err(Violation::Unrequested(text(name)));
        };
        // C-19, E-12: no name twice in one response.
        if !self.response.name(index) {
            return Err(Violation::Twice(text(name)));
        }
        Ok(index)
    }

    fn wants(&self, index: u32) -> bool {
        self.want.contains(index, self.ledger.len()) || self.also.contains(&index)
    }

    fn held(&self, index: u32) -> Held {
        let held = usize::try_from(index).ok().and_then(|index| self.held.get(index));
        held.copied().unwrap_or_default()
    }
}

/// C-18: one content has one version for everybody, and another content another version.
fn check_version(content: &Content, version: &[u8], history: &[Arc<Content>], name: &[u8]) -> Result<(), Violation> {
    let previous = content
        .serial
        .checked_sub(1)
        .and_then(|serial| history.get(usize::try_from(serial).ok()?));
    if !content.agrees(version) || previous.and_then(|previous| previous.version()) == Some(version) {
        return Err(Violation::Version(text(name)));
    }
    Ok(())
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
