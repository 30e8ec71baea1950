//! Reads a snapshot file.
//!
//! Owns that a file which is not complete is refused as a whole. Does not repair one.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use xxhash_rust::xxh3::xxh3_128;

use super::{CHECKSUM, FORMAT, Identity, MAGIC, Snapshot, SnapshotError, tag};
use crate::clock::WallClock;
use crate::xds::{
    Changes, Cut, HeldRemoval, Hold, HoldReason, Kind, Name, Older, Phase, Reason, Resource, ResourceParts, TypeUrl,
    Types, Update, Version,
};

/// The largest file that is read: no snapshot is as large, and a larger file does not fit into memory.
const LARGEST: u64 = 16 << 30;

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
    let metadata = fs::metadata(path).map_err(cannot)?;
    if !metadata.is_file() || metadata.len() > LARGEST {
        return Err(cannot(io::Error::other(
            "it is not a regular file, or is larger than 16 GiB",
        )));
    }
    let bytes = fs::read(path).map_err(cannot)?;
    decode(&bytes, types, now, true).map_err(|Fault { offset, what }| SnapshotError::Broken {
        path: path.to_owned(),
        offset,
        what,
    })
}

/// What is wrong with a snapshot.
#[derive(Debug, thiserror::Error)]
#[error("byte {offset}: {what}")]
pub struct Fault {
    offset: usize,
    what: String,
}

impl Fault {
    fn at(offset: usize, what: impl Into<String>) -> Self {
        let what = what.into();
        Self { offset, what }
    }
}

/// Reads a snapshot from its bytes, with keys and certificates or without. What is in it counts as received at `now`.
///
/// # Errors
///
/// It is not a complete snapshot.
pub fn decode(bytes: &[u8], types: &Types, now: Instant, secrets: bool) -> Result<Snapshot, Fault> {
    let mut cursor = Cursor { bytes, at: 0 };
    if cursor.take(MAGIC.len()).ok() != Some(MAGIC) {
        return Err(Fault::at(0, "this is not a snapshot of a relay"));
    }
    let at = cursor.at;
    let format = cursor.number()?;
    if format != FORMAT as usize {
        return Err(Fault::at(
            at,
            format!("its format is {format}, but this relay reads only format {FORMAT}"),
        ));
    }
    // Nothing else is read before the checksum has shown that the whole file is what was written.
    let end = bytes.len().saturating_sub(CHECKSUM);
    let (content, sum) = bytes.split_at_checked(end).unwrap_or_default();
    if sum != xxh3_128(content).to_le_bytes() {
        return Err(Fault::at(
            end,
            "the checksum is wrong: the file is incomplete or was changed",
        ));
    }
    cursor.bytes = content;
    let server = cursor.text()?.to_owned();
    let class = cursor.text()?.to_owned();
    let mut cut = Cut::default();
    while let Some(changes) = half(&mut cursor, types, now)? {
        if secrets || changes.type_url.kind() != Kind::Sds {
            cut = cut.with(&changes).0;
        }
    }
    let cut = cut.with_holds(holds(&mut cursor, types, now)?);
    let cut = cut.with_older(older(&mut cursor, types, now)?);
    cursor.byte()?;
    if cursor.at != content.len() {
        return Err(Fault::at(cursor.at, "the content should end here, but more follows"));
    }
    let of = Identity { server, class };
    Ok(Snapshot { of, cut })
}

/// Reads the next half of a type, if there is one.
fn half(cursor: &mut Cursor<'_>, types: &Types, now: Instant) -> Result<Option<Changes>, Fault> {
    let at = cursor.at;
    let (wildcard, complete) = match cursor.byte()? {
        tag::END | tag::HELD | tag::OLDER => {
            cursor.at = at;
            return Ok(None);
        }
        tag::NAMED => (false, None),
        tag::PART => (true, Some(false)),
        tag::WHOLE => (true, Some(true)),
        other => return Err(Fault::at(at, format!("{other} is not a known tag"))),
    };
    let type_url = types.resolve(cursor.text()?);
    let mut updates = Vec::new();
    loop {
        match cursor.peek() {
            Some(tag::RESOURCE) => {
                let resource = resource(cursor, &type_url, now)?;
                updates.extend(resource.map(|resource| Update::Put(resource, None)));
            }
            Some(tag::ABSENT) => {
                cursor.byte()?;
                updates.push(Update::Absent(Name::from(cursor.text()?), Reason::Said));
            }
            Some(_) | None => break,
        }
    }
    Ok(Some(Changes {
        type_url,
        wildcard,
        updates,
        complete,
        answered: None,
        phase: Phase::Steady,
    }))
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

/// Reads older contents. What an earlier version wrote in their place, what clients of a kind rejected, is skipped.
fn older(cursor: &mut Cursor<'_>, types: &Types, now: Instant) -> Result<Vec<Older>, Fault> {
    let (time, mut all) = (times(now), Vec::new());
    while cursor.peek() == Some(tag::OLDER) {
        cursor.byte()?;
        let type_url = types.resolve(cursor.text()?);
        let at = cursor.at;
        let version = Version::parse(cursor.text()?).ok_or_else(|| Fault::at(at, "this is not a version"))?;
        let (_, _) = (cursor.text()?, cursor.text()?);
        let since = time(cursor.long()?).min(now);
        let accepted = cursor.long()?;
        let ids = cursor.text()?.split('\n').filter(|id| !id.is_empty());
        let keepers = ids.map(Arc::from).collect();
        let Some(content) = resource(cursor, &type_url, now)? else {
            continue;
        };
        if version == Version::EMPTY {
            content.note_accepted(accepted);
            all.push(Older {
                type_url,
                content,
                since,
                keepers,
            });
        }
    }
    Ok(all)
}

/// Reads the removals that were not passed on.
fn holds(cursor: &mut Cursor<'_>, types: &Types, now: Instant) -> Result<Vec<Hold>, Fault> {
    let time = times(now);
    let mut holds: BTreeMap<(TypeUrl, HoldReason, Option<u32>), BTreeMap<Name, HeldRemoval>> = BTreeMap::new();
    while cursor.peek() == Some(tag::HELD) {
        cursor.byte()?;
        let type_url = types.resolve(cursor.text()?);
        let at = cursor.at;
        let word = cursor.text()?;
        // Behind the reason is the number of the judgement. Earlier versions wrote none.
        let (word, number) = word.split_once('-').unwrap_or((word, "1"));
        let reason = HoldReason::called(word).zip(number.parse().ok());
        let (reason, number) = reason.ok_or_else(|| Fault::at(at, format!("`{word}` is not a reason to hold")))?;
        let judgement = (reason == HoldReason::Mass).then_some(number);
        let name = Name::from(cursor.text()?);
        let (since, until) = (cursor.long()?, cursor.long()?);
        let wildcard = cursor.byte()? != 0;
        let extended = Some(cursor.text()?).filter(|text| !text.is_empty());
        let removal = HeldRemoval {
            since: time(since).min(now),
            until: (until != 0).then(|| time(until)),
            by: None,
            emptied: false,
            wildcard,
            extended: extended.map(Arc::from),
        };
        let hold = holds.entry((type_url, reason, judgement)).or_default();
        hold.insert(name, removal);
    }
    let holds = holds.into_iter();
    let holds = holds.map(|((type_url, reason, judgement), removals)| Hold {
        type_url,
        reason,
        judgement,
        removals: removals.into(),
    });
    Ok(holds.collect())
}

/// Reads a resource. `None`: an earlier version wrote it for some clients only (F-16).
fn resource(cursor: &mut Cursor<'_>, type_url: &TypeUrl, now: Instant) -> Result<Option<Arc<Resource>>, Fault> {
    cursor.byte()?;
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

/// What is left to read.
struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    fn take(&mut self, len: usize) -> Result<&'a [u8], Fault> {
        let end = self.at.checked_add(len);
        let Some(taken) = end.and_then(|end| self.bytes.get(self.at..end)) else {
            return Err(Fault::at(
                self.at,
                format!("{len} bytes should follow, but the content ends before that"),
            ));
        };
        self.at += len;
        Ok(taken)
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn byte(&mut self) -> Result<u8, Fault> {
        Ok(self.take(1)?.first().copied().unwrap_or_default())
    }

    fn number(&mut self) -> Result<usize, Fault> {
        let bytes = self.take(4)?.try_into().unwrap_or_default();
        Ok(u32::from_le_bytes(bytes) as usize)
    }

    fn long(&mut self) -> Result<u64, Fault> {
        Ok(u64::from_le_bytes(self.take(8)?.try_into().unwrap_or_default()))
    }

    fn sized(&mut self) -> Result<&'a [u8], Fault> {
        let len = self.number()?;
        self.take(len)
    }

    fn text(&mut self) -> Result<&'a str, Fault> {
        let at = self.at;
        let bytes = self.sized()?;
        std::str::from_utf8(bytes).map_err(|_| Fault::at(at, "a text is not UTF-8"))
    }
}
