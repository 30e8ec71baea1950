// SPDX-License-Identifier: Apache-2.0
//! Writes a snapshot file.
//!
//! Owns what is left out, and that a file is there completely or not at all. Does not know where the files are.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Instant;

use xxhash_rust::xxh3::Xxh3;

use super::{CHECKSUM, FORMAT, MAGIC, SnapshotError, SnapshotIdentity, tag};
use crate::clock::{WallClock, now};
use crate::xds::{Cut, HeldRemoval, Hold, HoldReason, Known, Name, Older, Reason, Resource, State, TypeUrl, Version};

/// The node ids of so many clients are written that use older content.
const KEEPERS_MAX: usize = 1024;

/// Which resources of a cut are written.
#[derive(Clone, Copy)]
pub struct Choice<'a> {
    /// Whether keys and certificates are.
    pub secrets: bool,
    /// Whether this one may be.
    pub may: &'a dyn Fn(&TypeUrl, &Resource) -> bool,
}

impl Choice<'_> {
    /// All of them, with keys and certificates or without.
    #[must_use]
    pub const fn all(secrets: bool) -> Self {
        Self {
            secrets,
            may: &|_, _| true,
        }
    }
}

/// Writes what [`write()`] would write, for another relay, behind its length: eight bytes, the least first. Nothing is in memory as a whole.
///
/// # Errors
///
/// The other relay does not take it.
pub fn give(into: &mut impl Write, of: &SnapshotIdentity, cut: &Cut, choice: Choice<'_>) -> io::Result<()> {
    let mut length = Length(0);
    content(&mut length, of, cut, choice)?;
    into.write_all(&(length.0 + CHECKSUM as u64).to_le_bytes())?;
    encode(into, of, cut, choice)
}

/// Writes what is known. Leaves out what must not outlive the relay: resources with a time to live, resources that must not be
/// cached, and without `secrets` all keys and certificates.
///
/// # Errors
///
/// The file cannot be written; then the file that was there before is still there.
pub fn write(path: &Path, of: &SnapshotIdentity, cut: &Cut, secrets: bool) -> Result<(), SnapshotError> {
    let temporary = path.with_extension("tmp");
    let written = write_whole(&temporary, of, cut, secrets)
        .and_then(|()| fs::rename(&temporary, path))
        // The name must be on disk too, not the content alone.
        .and_then(|()| path.parent().map_or(Ok(()), |dir| File::open(dir)?.sync_all()));
    written.map_err(|source| {
        let _ = fs::remove_file(&temporary);
        SnapshotError::Write {
            path: path.to_owned(),
            source,
        }
    })
}

fn write_whole(path: &Path, of: &SnapshotIdentity, cut: &Cut, secrets: bool) -> io::Result<()> {
    // A run that was killed while it wrote may have left this file behind; nobody needs it.
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Err(_) | Ok(()) => {}
    }
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    let mut into = BufWriter::with_capacity(1 << 18, file);
    encode(&mut into, of, cut, Choice::all(secrets))?;
    into.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()
}

/// Writes the content and its checksum.
fn encode(into: &mut impl Write, of: &SnapshotIdentity, cut: &Cut, choice: Choice<'_>) -> io::Result<()> {
    let sum = Xxh3::new();
    let mut summed = Summed { into, sum };
    content(&mut summed, of, cut, choice)?;
    let sum = summed.sum.digest128();
    summed.into.write_all(&sum.to_le_bytes())
}

fn content(into: &mut impl Write, of: &SnapshotIdentity, cut: &Cut, choice: Choice<'_>) -> io::Result<()> {
    into.write_all(MAGIC)?;
    into.write_all(&FORMAT.to_le_bytes())?;
    text(into, &of.server)?;
    text(into, &of.class)?;
    for (type_url, slot) in cut.slots() {
        if type_url.kind().is_secret() && !choice.secrets {
            continue;
        }
        if let Some(state) = &slot.wildcard {
            // Without the resources that are left out, the wildcard is not complete.
            let all = state
                .resources()
                .all(|resource| outlives(state, resource) && (choice.may)(type_url, resource));
            let tag = if state.complete() && all { tag::WHOLE } else { tag::PART };
            half(into, tag, type_url, state, choice)?;
        }
        half(into, tag::NAMED, type_url, &slot.named, choice)?;
    }
    // A change that waits is said anew.
    let holds = cut.holds().iter();
    for hold in holds.filter(|hold| hold.reason != HoldReason::Unready) {
        for (name, removal) in &hold.removals {
            held(into, hold, name, removal)?;
        }
    }
    let may = |one: &&Older| !one.type_url.kind().is_secret() && (choice.may)(&one.type_url, &one.content);
    for one in cut.older().iter().filter(may) {
        older(into, one)?;
    }
    into.write_all(&[tag::END])
}

fn half(into: &mut impl Write, tag: u8, type_url: &TypeUrl, state: &State, choice: Choice<'_>) -> io::Result<()> {
    into.write_all(&[tag])?;
    text(into, type_url.url())?;
    for (name, known) in state.entries() {
        match known {
            Known::Present(found) if outlives(state, found) && (choice.may)(type_url, found) => resource(into, found)?,
            Known::Absent(Reason::Said) => {
                into.write_all(&[tag::ABSENT])?;
                text(into, name.as_str())?;
            }
            Known::Present(_) | Known::Absent(Reason::TimedOut | Reason::Expired) | Known::Held(_) => {}
        }
    }
    Ok(())
}

/// Writes a removal that is not passed on, with its times as milliseconds since 1970.
fn held(into: &mut impl Write, hold: &Hold, name: &Name, removal: &HeldRemoval) -> io::Result<()> {
    let clock = WallClock::read();
    let time = |at: Instant| u64::try_from(clock.unix(at).as_millis()).unwrap_or(u64::MAX);
    into.write_all(&[tag::HELD])?;
    text(into, hold.type_url.url())?;
    // Each absence of the server is a zero before the number, which earlier versions read over.
    let absences = hold.clock.map_or(0, |clock| usize::from(clock.absences));
    match hold.judgement {
        Some(number) => text(
            into,
            &format!("{}-{}{number}", hold.reason.word(), "0".repeat(absences)),
        )?,
        None => text(into, hold.reason.word())?,
    }
    text(into, name.as_str())?;
    into.write_all(&time(removal.since).to_le_bytes())?;
    // A clock that stands runs from now on: nobody says how long the next run comes later.
    let clock = hold.clock.map(|clock| now() + clock.left(now()));
    let ordered = removal.extended.as_ref().map(|(until, _)| *until);
    let until = removal.until.max(clock).max(ordered);
    into.write_all(&until.map_or(0, time).to_le_bytes())?;
    into.write_all(&[u8::from(removal.wildcard)])?;
    text(into, removal.extended.as_ref().map_or("", |(_, why)| why))
}

/// Writes older content: as the version before writes what a kind of client rejects, but of no version, which is none of any content.
fn older(into: &mut impl Write, one: &Older) -> io::Result<()> {
    let since = u64::try_from(WallClock::read().unix(one.since).as_millis()).unwrap_or(u64::MAX);
    let accepted = u64::from(one.content.accepted()).to_le_bytes();
    into.write_all(&[tag::OLDER])?;
    text(into, one.type_url.url())?;
    bytes(into, &Version::EMPTY.text())?;
    text(into, "")?;
    text(into, "")?;
    into.write_all(&since.to_le_bytes())?;
    into.write_all(&accepted)?;
    let ids = one.keepers.iter().take(KEEPERS_MAX).filter(|id| !id.contains('\n'));
    let ids: Vec<&str> = ids.map(|id| &**id).collect();
    text(into, &ids.join("\n"))?;
    resource(into, &one.content)
}

/// E-11, F-17: whether a resource may be served by a later run.
fn outlives(state: &State, resource: &Resource) -> bool {
    resource.may_be_cached() && state.expiry(resource.name()).is_none()
}

fn resource(into: &mut impl Write, resource: &Resource) -> io::Result<()> {
    into.write_all(&[tag::RESOURCE])?;
    text(into, resource.name().as_str())?;
    // Earlier versions wrote here for which clients the resource is.
    number(into, 0)?;
    number(into, resource.aliases().len())?;
    for alias in resource.aliases() {
        text(into, alias.as_str())?;
    }
    text(into, resource.endpoints().map_or("", Name::as_str))?;
    bytes(into, &resource.passed_on())?;
    bytes(into, &resource.body())
}

fn text(into: &mut impl Write, text: &str) -> io::Result<()> {
    bytes(into, text.as_bytes())
}

fn bytes(into: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    number(into, bytes.len())?;
    into.write_all(bytes)
}

fn number(into: &mut impl Write, number: usize) -> io::Result<()> {
    let number = u32::try_from(number).map_err(|_| io::Error::other("a field of more than 4 GiB"))?;
    into.write_all(&number.to_le_bytes())
}

/// Counts what is written.
struct Length(u64);

impl Write for Length {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Computes the checksum of what is written through it.
struct Summed<W> {
    into: W,
    sum: Xxh3,
}

impl<W: Write> Write for Summed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.into.write(bytes)?;
        self.sum.update(bytes.get(..written).unwrap_or(bytes));
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.into.flush()
    }
}
