//! The files of one source, and the last good content of each.
//!
//! Owns what a bad, missing or empty file means: never that something good goes. Refuses to know when to look again.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use xxhash_rust::xxh3::xxh3_128;

use super::content::{Content, Twice};
use super::disk::{self, Listed, Stamp};
use super::parsed_file::{Dictionary, Format, ParsedFile};
use crate::upstream::clock;

/// The files, as they were found last.
#[derive(Debug)]
pub struct FileSet {
    path: PathBuf,
    /// The most bytes of all files together (`limits.upstream_message`).
    limit: usize,
    dictionary: Dictionary,
    /// By name, sorted; the one file of a source that is no directory has none.
    files: Vec<(OsString, FileState)>,
    content: Arc<Content>,
    /// Whether every file was good when they were merged last.
    sound: bool,
    /// Names that are there twice, in words.
    disputes: Vec<String>,
    /// What is wrong now, each in words that begin with the file.
    faults: Vec<String>,
}

/// One file.
#[derive(Debug, Default)]
struct FileState {
    stamp: Option<Stamp>,
    /// The stamp may stay the same although the content changes.
    young: bool,
    hash: Option<u128>,
    len: usize,
    good: Option<ParsedFile>,
    fault: Option<String>,
}

/// How often a long reading says how far it is.
const PROGRESS: Duration = Duration::from_secs(5);

/// What one look at the files brought.
#[derive(Debug, Default)]
pub struct FileChanges {
    /// Whether the content is another one than before.
    pub changed: bool,
    /// What is wrong now and was not before.
    pub new_faults: Vec<String>,
    /// What was left out of files that were read now.
    pub warnings: Vec<String>,
}

impl FileSet {
    /// The files at a path, of which none was looked at.
    #[must_use]
    pub fn new(path: &Path, limit: usize, dictionary: Dictionary) -> Self {
        Self {
            path: path.to_owned(),
            limit,
            dictionary,
            files: Vec::new(),
            content: Arc::default(),
            sound: false,
            disputes: Vec::new(),
            faults: Vec::new(),
        }
    }

    /// All that is good.
    #[must_use]
    pub const fn content(&self) -> &Arc<Content> {
        &self.content
    }

    /// What is wrong now.
    #[must_use]
    pub fn faults(&self) -> &[String] {
        &self.faults
    }

    /// How many files there are.
    #[must_use]
    pub fn files(&self) -> usize {
        self.files.len()
    }

    /// When something in them ends by itself: then is the time for a look.
    #[must_use]
    pub fn ends(&self) -> Option<Instant> {
        self.content.ends()
    }

    /// Looks at the files, and reads those that are not as they were.
    pub fn look(&mut self, now: Instant) -> FileChanges {
        let listed = self.list();
        self.handle_look(listed, disk::read, now)
    }

    /// The same for files that need not be on a disk: which there are, sorted by their names, or why that cannot be told; and how
    /// one is read, up to so many bytes.
    pub fn handle_look(
        &mut self,
        listed: Result<Vec<Listed>, String>,
        read: impl Fn(&Path, usize) -> Result<(Stamp, Vec<u8>), String>,
        now: Instant,
    ) -> FileChanges {
        let mut found = FileChanges::default();
        let mut faults = Vec::new();
        let mut changed = false;
        match listed {
            Ok(listed) => {
                let (names, stamps) = listed.into_iter().unzip();
                changed |= self.arrange(names);
                changed |= self.read(stamps, read, now, &mut found.warnings);
            }
            Err(fault) => faults.push(format!("{}: {fault}", self.path.display())),
        }
        for (name, kept) in &self.files {
            faults.extend(
                kept.fault
                    .as_ref()
                    .map(|fault| within(&called(&self.path, name), fault)),
            );
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

    /// The files that there are now, sorted by their names.
    fn list(&self) -> Result<Vec<Listed>, String> {
        let metadata = std::fs::metadata(&self.path);
        if !metadata.map_err(|error| error.to_string())?.is_dir() {
            return Ok(vec![(OsString::new(), Stamp::of(&self.path))]);
        }
        let listed = disk::list(&self.path)?;
        if listed.is_empty() {
            return Err(
                "no file in it ends in .yaml, .yml, .json, .pb or .pb_text; what was there before stays".to_owned(),
            );
        }
        Ok(listed)
    }

    /// Keeps exactly the files of these names. Whether one has gone: a file that leaves a directory takes its resources with it.
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

    /// Whether anything good is another than before. What is as it was is not read again.
    fn read(
        &mut self,
        stamps: Vec<Result<Stamp, String>>,
        read: impl Fn(&Path, usize) -> Result<(Stamp, Vec<u8>), String>,
        now: Instant,
        warnings: &mut Vec<String>,
    ) -> bool {
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
            changed |= kept.renew(&path, read(&path, left), &self.dictionary, now, warnings);
            left = left.saturating_sub(kept.len);
        }
        changed
    }

    fn merge(&mut self, now: Instant) {
        let mut lists: Vec<&mut [_]> = Vec::new();
        for (_, kept) in &mut self.files {
            lists.push(kept.good.as_mut().map_or(&mut [], |parsed| &mut parsed.resources));
        }
        let (content, twice) = Content::merge(&mut lists, &self.content, self.sound, now);
        self.content = Arc::new(content);
        self.disputes = twice.iter().map(|twice| self.said(twice)).collect();
    }

    fn said(&self, twice: &Twice) -> String {
        let called = |file: usize, place: Option<crate::json::Place>| {
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
    /// Reads the file anew. Whether what is good of it is another than before.
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
                self.fault = Some(fault);
                return false;
            }
        };
        let again = self.stamp.replace(stamp) != Some(stamp);
        self.young = stamp.is_young();
        self.len = content.len();
        let hash = Some(xxh3_128(&content));
        // E-11: what is written again without a change is received again.
        let renewed = again && self.good.as_ref().is_some_and(ParsedFile::ends);
        if self.hash == hash && !renewed {
            return false;
        }
        self.hash = hash;
        match ParsedFile::parse(&content, Format::of(path), dictionary, now) {
            Ok(parsed) => {
                warnings.extend(
                    parsed
                        .warnings
                        .iter()
                        .map(|fault| fault.within(&path.display().to_string())),
                );
                self.good = Some(parsed);
                self.fault = None;
                true
            }
            // I-05: a bad file never replaces a good state.
            Err(fault) => {
                self.fault = Some(fault.to_string());
                false
            }
        }
    }
}

/// A fault with its file, as compilers and editors write it: a place comes right after the name.
fn within(path: &Path, fault: &str) -> String {
    let placed = fault.starts_with(|c: char| c.is_ascii_digit());
    format!("{}:{}{fault}", path.display(), if placed { "" } else { " " })
}

/// The path of a file of the source.
fn called(source: &Path, name: &OsString) -> PathBuf {
    if name.is_empty() {
        source.to_owned()
    } else {
        source.join(name)
    }
}
