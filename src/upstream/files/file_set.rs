// SPDX-License-Identifier: Apache-2.0
//! The files of one source, and the last good content of each.
//!
//! Owns what a bad, missing or empty file means: good resources never go because of it. Does not decide when to look again.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use xxhash_rust::xxh3::xxh3_128;

use super::content::{FileContents, Twice};
use super::disk::{self, Stamp, StampedFile};
use super::format::FileFormat;
use super::parsed_file::{Dictionary, ParsedFile};
use crate::upstream::clock;

/// The files, as they were found last.
#[derive(Debug)]
pub struct FileSet {
    path: PathBuf,
    /// The most bytes of all files together (`limits.upstream_message`).
    limit: usize,
    dictionary: Dictionary,
    /// Sorted by name. If the source is a single file, its name is empty.
    files: Vec<(OsString, FileState)>,
    content: Arc<FileContents>,
    /// Whether every file was good at the last look.
    sound: bool,
    /// Whether the files could not be listed at the last look.
    unlisted: bool,
    /// Messages about names that occur twice.
    disputes: Vec<String>,
    /// Messages about all current faults; each begins with the file.
    faults: Vec<String>,
}

/// One file.
#[derive(Debug, Default)]
struct FileState {
    stamp: Option<Stamp>,
    /// Whether the content may change without a change of the stamp.
    young: bool,
    hash: Option<u128>,
    len: usize,
    good: Option<ParsedFile>,
    faults: Vec<String>,
    /// Whether it has a name that occurs before, too.
    disputed: bool,
}

/// How often a long reading logs its progress.
const PROGRESS: Duration = Duration::from_secs(5);

/// The result of one look at the files.
#[derive(Debug, Default)]
pub struct FileChanges {
    /// Whether the content changed.
    pub changed: bool,
    /// The faults that are new.
    pub new_faults: Vec<String>,
    /// Warnings about parts of the files that were skipped in this reading.
    pub warnings: Vec<String>,
}

impl FileSet {
    /// Creates the set of files at a path; reads nothing yet.
    #[must_use]
    pub fn new(path: &Path, limit: usize, dictionary: Dictionary) -> Self {
        Self {
            path: path.to_owned(),
            limit,
            dictionary,
            files: Vec::new(),
            content: Arc::default(),
            sound: false,
            unlisted: false,
            disputes: Vec::new(),
            faults: Vec::new(),
        }
    }

    /// Returns the merged content of all good files.
    #[must_use]
    pub const fn content(&self) -> &Arc<FileContents> {
        &self.content
    }

    /// Returns the messages about all current faults.
    #[must_use]
    pub fn faults(&self) -> &[String] {
        &self.faults
    }

    /// Returns the number of files.
    #[must_use]
    pub fn files(&self) -> usize {
        self.files.len()
    }

    /// Returns the number of files with faults; a source that cannot be listed counts as one.
    #[must_use]
    pub fn bad_files(&self) -> usize {
        let bad = |kept: &FileState| kept.disputed || !kept.faults.is_empty();
        self.files.iter().filter(|(_, kept)| bad(kept)).count() + usize::from(self.unlisted)
    }

    /// Returns when the next time to live ends; look at the files then.
    #[must_use]
    pub fn ends(&self) -> Option<Instant> {
        self.content.ends()
    }

    /// Looks at the files, and reads those that have changed.
    pub fn look(&mut self, now: Instant) -> FileChanges {
        let listed = self.list();
        let mut found = FileChanges::default();
        let mut faults = Vec::new();
        let mut changed = false;
        self.unlisted = listed.is_err();
        match listed {
            Ok(listed) => {
                let (names, stamps) = listed.into_iter().unzip();
                changed |= self.arrange(names);
                changed |= self.read(stamps, now, &mut found.warnings);
            }
            Err(fault) => faults.push(format!("{}: {fault}", self.path.display())),
        }
        for (name, kept) in &self.files {
            let path = called(&self.path, name);
            faults.extend(kept.faults.iter().map(|fault| within(&path, fault)));
        }
        let sound = !self.files.is_empty() && faults.is_empty();
        let becomes_whole = sound && !self.sound && !self.content.whole();
        self.sound = sound;
        let ended = self.content.ends().is_some_and(|at| at <= now);
        if changed || becomes_whole || ended {
            found.changed = true;
            self.merge(now);
        }
        faults.extend(self.disputes.iter().cloned());
        let old: BTreeSet<&String> = self.faults.iter().collect();
        let new = faults.iter().filter(|fault| !old.contains(fault));
        found.new_faults = new.cloned().collect();
        self.faults = faults;
        found
    }

    /// Returns the current files, sorted by name.
    fn list(&self) -> Result<Vec<StampedFile>, String> {
        let metadata = std::fs::metadata(&self.path);
        if !metadata.map_err(|error| error.to_string())?.is_dir() {
            return Ok(vec![(OsString::new(), Stamp::of(&self.path))]);
        }
        let listed = disk::list(&self.path)?;
        if listed.is_empty() {
            return Err(
                "no file in it ends in .yaml, .yml, .json, .pb or .pb_text; its previous content stays".to_owned(),
            );
        }
        Ok(listed)
    }

    /// Keeps exactly the files with these names. Returns whether one has gone: the resources of a file that was removed go, too.
    fn arrange(&mut self, names: Vec<OsString>) -> bool {
        let mut before = std::mem::take(&mut self.files).into_iter().peekable();
        let mut gone = false;
        for name in names {
            while before.next_if(|(old, _)| *old < name).is_some() {
                gone = true;
            }
            let kept = before.next_if(|(old, _)| *old == name);
            self.files.push(kept.unwrap_or_else(|| (name, FileState::default())));
        }
        gone | before.next().is_some()
    }

    /// Reads the files that have changed. Returns whether any good content is new.
    fn read(&mut self, stamps: Vec<Result<Stamp, String>>, now: Instant, warnings: &mut Vec<String>) -> bool {
        let (mut left, of) = (self.limit, self.files.len());
        let mut changed = false;
        let mut due = clock::now() + PROGRESS;
        for (at, ((name, kept), stamp)) in self.files.iter_mut().zip(stamps).enumerate() {
            let same = stamp.is_ok_and(|stamp| kept.stamp == Some(stamp)) && !kept.young;
            if same && kept.len <= left {
                left -= kept.len;
                continue;
            }
            if clock::now() >= due {
                due = clock::now() + PROGRESS;
                tracing::info!(path = %self.path.display(), read = at, of, "reading files");
            }
            let path = called(&self.path, name);
            changed |= kept.renew(&path, disk::read(&path, left), &self.dictionary, now, warnings);
            left = left.saturating_sub(kept.len);
        }
        changed
    }

    fn merge(&mut self, now: Instant) {
        let mut lists: Vec<&mut [_]> = Vec::new();
        for (_, kept) in &mut self.files {
            lists.push(kept.good.as_mut().map_or(&mut [], |parsed| &mut parsed.resources));
        }
        let (content, twice) = FileContents::merge(&mut lists, &self.content, self.sound, now);
        self.content = Arc::new(content);
        self.disputes = twice.iter().map(|twice| self.said(twice)).collect();
        let disputed: BTreeSet<usize> = twice.iter().map(|twice| twice.file).collect();
        for (at, (_, kept)) in self.files.iter_mut().enumerate() {
            kept.disputed = disputed.contains(&at);
        }
    }

    fn said(&self, twice: &Twice) -> String {
        let called = |file: usize, place: Option<json::Place>| {
            let path = self.files.get(file).map(|(name, _)| called(&self.path, name));
            let path = path.map(|path| path.display().to_string()).unwrap_or_default();
            place.map_or(path.clone(), |place| format!("{path}:{place}"))
        };
        let first = called(twice.first, twice.first_place);
        let here = called(twice.file, twice.place);
        format!(
            "{here}: {} is already in {first}, with other content; remove one",
            twice.name
        )
    }
}

impl FileState {
    /// Takes the result of reading the file. Returns whether its good content is new.
    fn renew(
        &mut self,
        path: &Path,
        read: Result<(Stamp, Vec<u8>), String>,
        dictionary: &Dictionary,
        now: Instant,
        warnings: &mut Vec<String>,
    ) -> bool {
        let (stamp, content) = match read {
            Ok(read) => read,
            Err(fault) => {
                self.stamp = None;
                self.hash = None;
                self.faults = vec![fault];
                return false;
            }
        };
        let again = self.stamp.replace(stamp) != Some(stamp);
        self.young = stamp.is_young();
        self.len = content.len();
        let hash = Some(xxh3_128(&content));
        // E-11: writing a file again without a change renews its times to live.
        let renewed = again && self.good.as_ref().is_some_and(ParsedFile::ends);
        if self.hash == hash && !renewed {
            return false;
        }
        self.hash = hash;
        match ParsedFile::parse(&content, FileFormat::of(path), dictionary, now) {
            Ok(parsed) => {
                warnings.extend(
                    parsed
                        .warnings
                        .iter()
                        .map(|fault| fault.within(&path.display().to_string())),
                );
                self.good = Some(parsed);
                self.faults.clear();
                true
            }
            // I-05: a bad file never replaces a good state.
            Err(faults) => {
                self.faults = faults.iter().map(ToString::to_string).collect();
                false
            }
        }
    }
}

/// Returns a fault with its file as compilers write it: the line and column come right after the file name.
fn within(path: &Path, fault: &str) -> String {
    let placed = fault.starts_with(|c: char| c.is_ascii_digit());
    format!("{}:{}{fault}", path.display(), if placed { "" } else { " " })
}

/// Returns the path of a file of the source.
fn called(source: &Path, name: &OsString) -> PathBuf {
    if name.is_empty() {
        source.to_owned()
    } else {
        source.join(name)
    }
}
