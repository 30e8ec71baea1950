// SPDX-License-Identifier: Apache-2.0
//! Reads a snapshot as its bytes come.
//!
//! Owns that one which is not complete is refused as a whole. Does not repair one, and keeps no more of its bytes than one item needs.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use xxhash_rust::xxh3::Xxh3;

use super::cursor::{Cursor, Halt, SnapshotFault};
use super::{CHECKSUM, FORMAT, MAGIC, Snapshot, SnapshotError, SnapshotIdentity, tag};
use crate::clock::WallClock;
use crate::xds::{
    Changes, Cut, HeldRemoval, Hold, HoldClock, HoldReason, Name, Older, Reason, Resource, ResourceParts, TypeUrl,
    Types, Update, Version,
};

/// The largest file that is read: no snapshot is as large, and a larger file does not fit into memory.
const LARGEST: u64 = 16 << 30;
/// How much of a file is read at a time.
const READ_BYTES: usize = 256 << 10;

/// Reads a snapshot. What is in it counts as received at `now`.
///
/// # Errors
///
/// There is no file, or it is not a complete snapshot.
pub fn read(path: &Path, types: &Types, now: Instant) -> Result<Snapshot, SnapshotError> {
    let cannot = |source| SnapshotError::Read {
        path: path.to_owned(),
        source,
    };
    let broken = |SnapshotFault { offset, what }| SnapshotError::Broken {
        path: path.to_owned(),
        offset,
        what,
    };
    let mut file = File::open(path).map_err(cannot)?;
    let metadata = file.metadata().map_err(cannot)?;
    if !metadata.is_file() || metadata.len() > LARGEST {
        return Err(cannot(io::Error::other(
            "it is not a regular file, or is larger than 16 GiB",
        )));
    }
    let mut decoder = Decoder::new(types, now, true);
    let mut bytes = vec![0; READ_BYTES];
    loop {
        let read = file.read(&mut bytes).map_err(cannot)?;
        match bytes.get(..read) {
            Some(read @ [_, ..]) => decoder.feed(read).map_err(broken)?,
            Some([]) | None => return decoder.finish().map_err(broken),
        }
    }
}

/// A snapshot of which more may come.
pub struct Decoder {
    types: Types,
    now: Instant,
    secrets: bool,
    next: NextPart,
    /// What has come and is not read yet: less than one item.
    rest: Vec<u8>,
    /// Where it begins in the snapshot.
    at: usize,
    /// From how many bytes of it on reading goes on.
    least: usize,
    sum: Xxh3,
    of: SnapshotIdentity,
    cut: Cut,
    /// The half of a type that is being read.
    half: Option<Changes>,
    holds: SnapshotHolds,
    older: Vec<Older>,
}

/// By type, reason, and the number of a judgement with its absences.
type SnapshotHolds = BTreeMap<(TypeUrl, HoldReason, Option<(u32, u8)>), BTreeMap<Name, HeldRemoval>>;

/// What follows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum NextPart {
    Head,
    Content,
    Checksum,
    Nothing,
}

impl Decoder {
    /// Begins a snapshot, with keys and certificates or without. What is in it counts as received at `now`.
    #[must_use]
    pub fn new(types: &Types, now: Instant, secrets: bool) -> Self {
        Self {
            types: types.clone(),
            now,
            secrets,
            next: NextPart::Head,
            rest: Vec::new(),
            at: 0,
            least: 1,
            sum: Xxh3::new(),
            of: SnapshotIdentity {
                server: String::new(),
                class: String::new(),
            },
            cut: Cut::default(),
            half: None,
            holds: BTreeMap::new(),
            older: Vec::new(),
        }
    }

    /// Reads the next bytes.
    ///
    /// # Errors
    ///
    /// This is no snapshot, or there is no memory for it.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<(), SnapshotFault> {
        let mut rest = std::mem::take(&mut self.rest);
        if rest.try_reserve(bytes.len()).is_err() {
            return Err(SnapshotFault::at(self.at, "there is no memory for what follows"));
        }
        rest.extend_from_slice(bytes);
        let mut read = 0;
        while let Some(left @ [_, ..]) = rest.get(read..).filter(|left| left.len() >= self.least) {
            let mut cursor = Cursor::new(left, self.at);
            match self.item(&mut cursor) {
                Ok(()) => {
                    self.least = 1;
                    self.at += cursor.read();
                    if self.next != NextPart::Nothing {
                        self.sum.update(left.get(..cursor.read()).unwrap_or_default());
                    }
                    read += cursor.read();
                }
                Err(Halt::More(least)) => self.least = least,
                Err(Halt::Wrong(fault)) => return Err(fault),
            }
        }
        drop(rest.drain(..read));
        self.rest = rest;
        Ok(())
    }

    /// Nothing follows.
    ///
    /// # Errors
    ///
    /// The snapshot is not complete.
    pub fn finish(self) -> Result<Snapshot, SnapshotFault> {
        let Self { next, of, cut, .. } = self;
        match next {
            NextPart::Nothing => Ok(Snapshot { of, cut }),
            NextPart::Head if self.at + self.rest.len() < MAGIC.len() => Err(foreign()),
            NextPart::Head | NextPart::Content | NextPart::Checksum => {
                let more = self.least.saturating_sub(self.rest.len());
                let what =
                    format!("{more} bytes should follow, but it ends before that: it is incomplete or was changed");
                Err(SnapshotFault::at(self.at, what))
            }
        }
    }

    /// Reads one item.
    fn item(&mut self, cursor: &mut Cursor<'_>) -> Result<(), Halt> {
        match self.next {
            NextPart::Head => self.head(cursor),
            NextPart::Content => self.content(cursor),
            NextPart::Checksum => {
                let at = cursor.at();
                if cursor.take(CHECKSUM)? != self.sum.digest128().to_le_bytes() {
                    let what = "the checksum is wrong: it is incomplete or was changed";
                    return Err(SnapshotFault::at(at, what).into());
                }
                self.next = NextPart::Nothing;
                Ok(())
            }
            NextPart::Nothing => {
                Err(SnapshotFault::at(cursor.at(), "the content should end here, but more follows").into())
            }
        }
    }

    fn head(&mut self, cursor: &mut Cursor<'_>) -> Result<(), Halt> {
        if cursor.take(MAGIC.len())? != MAGIC {
            return Err(foreign().into());
        }
        let at = cursor.at();
        let format = cursor.number()?;
        if format != FORMAT as usize {
            let what = format!("its format is {format}, but this relay reads only format {FORMAT}");
            return Err(SnapshotFault::at(at, what).into());
        }
        self.of = SnapshotIdentity {
            server: cursor.text()?.to_owned(),
            class: cursor.text()?.to_owned(),
        };
        self.next = NextPart::Content;
        Ok(())
    }

    fn content(&mut self, cursor: &mut Cursor<'_>) -> Result<(), Halt> {
        let at = cursor.at();
        let (wildcard, complete) = match cursor.byte()? {
            tag::RESOURCE if self.half.is_some() => return self.resource(cursor),
            tag::ABSENT if self.half.is_some() => {
                let absent = Update::Absent(Name::from(cursor.text()?), Reason::Said);
                self.put(absent);
                return Ok(());
            }
            tag::HELD => return self.held(cursor),
            tag::OLDER => return self.older(cursor),
            tag::END => {
                self.end_half();
                self.cut = self.cut.with_holds(said(std::mem::take(&mut self.holds), self.now));
                self.cut = self.cut.with_older(std::mem::take(&mut self.older));
                self.next = NextPart::Checksum;
                return Ok(());
            }
            tag::NAMED => (false, None),
            tag::PART => (true, Some(false)),
            tag::WHOLE => (true, Some(true)),
            other => return Err(SnapshotFault::at(at, format!("{other} is not a tag that may stand here")).into()),
        };
        let type_url = self.types.resolve(cursor.text()?);
        self.end_half();
        self.half = Some(Changes {
            complete,
            ..Changes::of((type_url, wildcard), Vec::new())
        });
        Ok(())
    }

    fn put(&mut self, update: Update) {
        if let Some(half) = &mut self.half
            && (self.secrets || !half.type_url.kind().is_secret())
        {
            half.updates.push(update);
        }
    }

    fn end_half(&mut self) {
        if let Some(half) = self.half.take()
            && (self.secrets || !half.type_url.kind().is_secret())
        {
            self.cut = self.cut.with(&half).0;
        }
    }

    fn resource(&mut self, cursor: &mut Cursor<'_>) -> Result<(), Halt> {
        let Some(half) = &self.half else { return Ok(()) };
        if let Some(resource) = resource(cursor, &half.type_url, self.now)? {
            self.put(Update::Put(resource, None));
        }
        Ok(())
    }

    /// Reads a removal that was not passed on.
    fn held(&mut self, cursor: &mut Cursor<'_>) -> Result<(), Halt> {
        let (now, time) = (self.now, times(self.now));
        let type_url = self.types.resolve(cursor.text()?);
        let at = cursor.at();
        let word = cursor.text()?;
        // Behind the reason is the number of the judgement. Earlier versions wrote none, or one without zeros.
        let (word, number) = word.split_once('-').unwrap_or((word, "1"));
        let absences = number.len() - number.trim_start_matches('0').len();
        let absences = u8::try_from(absences).unwrap_or(u8::MAX);
        let reason = HoldReason::called(word).zip(number.parse().ok());
        let (reason, number) =
            reason.ok_or_else(|| SnapshotFault::at(at, format!("`{word}` is not a reason to hold")))?;
        let judgement = (reason == HoldReason::Mass).then_some((number, absences));
        let name = Name::from(cursor.text()?);
        let (since, until) = (cursor.long()?, cursor.long()?);
        let wildcard = cursor.byte()? != 0;
        let until = (until != 0).then(|| time(until));
        let extended = Some(cursor.text()?).filter(|text| !text.is_empty());
        let removal = HeldRemoval {
            since: time(since).min(now),
            until,
            by: None,
            emptied: false,
            wildcard,
            extended: until.zip(extended.map(Arc::from)),
        };
        self.end_half();
        let hold = self.holds.entry((type_url, reason, judgement)).or_default();
        hold.insert(name, removal);
        Ok(())
    }

    /// Reads older content. What an earlier version wrote in its place, what clients of a kind rejected, is skipped.
    fn older(&mut self, cursor: &mut Cursor<'_>) -> Result<(), Halt> {
        let type_url = self.types.resolve(cursor.text()?);
        let at = cursor.at();
        let version = Version::parse(cursor.text()?).ok_or_else(|| SnapshotFault::at(at, "this is not a version"))?;
        let (_, _) = (cursor.text()?, cursor.text()?);
        let since = times(self.now)(cursor.long()?).min(self.now);
        // A file of a later version may know more software.
        let accepted = (cursor.long()? & u64::from(u16::MAX)) as u16;
        let ids = cursor.text()?.split('\n').filter(|id| !id.is_empty());
        let keepers = ids.map(Arc::from).collect();
        cursor.byte()?;
        let content = resource(cursor, &type_url, self.now)?;
        self.end_half();
        if let Some(content) = content.filter(|_| version == Version::EMPTY) {
            content.note_accepted(accepted);
            self.older.push(Older {
                type_url,
                content,
                since,
                keepers,
                refers: true,
            });
        }
        Ok(())
    }
}

/// This is something else.
fn foreign() -> SnapshotFault {
    SnapshotFault::at(0, "this is not a snapshot of a relay")
}

/// Returns how times are read. An instant before the system began is now: what it ends is over, and what began then begins anew.
fn times(now: Instant) -> impl Fn(u64) -> Instant {
    let today = WallClock::read().unix(now);
    move |millis| {
        let at = Duration::from_millis(millis);
        match at.checked_sub(today) {
            Some(ahead) => now.checked_add(ahead).unwrap_or(now),
            None => now.checked_sub(today - at).unwrap_or(now),
        }
    }
}

/// Returns the removals that were not passed on.
fn said(holds: SnapshotHolds, now: Instant) -> Vec<Hold> {
    let holds = holds.into_iter();
    let holds = holds.map(|((type_url, reason, judgement), removals)| {
        let first = removals.values().map(|removal| removal.until).min().flatten();
        // A person may hold some of them longer. Earlier versions wrote no end of a clock that stands.
        let left = first.map_or(Duration::MAX, |until| until.saturating_duration_since(now));
        Hold {
            type_url,
            reason,
            judgement: judgement.map(|(number, _)| number),
            clock: judgement.map(|(_, absences)| HoldClock {
                absences,
                ..HoldClock::standing(left)
            }),
            removals: removals.into(),
        }
    });
    holds.collect()
}

/// Reads a resource. `None`: an earlier version wrote it for some clients only (F-16).
fn resource(cursor: &mut Cursor<'_>, type_url: &TypeUrl, now: Instant) -> Result<Option<Arc<Resource>>, Halt> {
    let name = Name::from(cursor.text()?);
    let for_all = cursor.sized()?.is_empty();
    let mut aliases = Vec::new();
    for _ in 0..cursor.number()? {
        aliases.push(Name::from(cursor.text()?));
    }
    let endpoints = Some(cursor.text()?).filter(|name| !name.is_empty()).map(Name::from);
    let parts = ResourceParts {
        type_url,
        name,
        aliases,
        passed_on: cursor.sized()?,
        body: cursor.sized()?,
        endpoints,
        received: now,
    };
    Ok(for_all.then(|| Arc::new(Resource::new(parts, 0))))
}
