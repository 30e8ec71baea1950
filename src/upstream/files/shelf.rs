//! The files of one source, and the last good content of each.
//!
//! Owns what a bad, missing or empty file means: never that something good goes. Refuses to know when to look again.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use xxhash_rust::xxh3::xxh3_128;

use super::content::{Content, Twice};
use super::disk::{self, Stamp};
use super::sheet::{Dictionary, Format, Sheet};

/// The files, as they were found last.
#[derive(Debug)]
pub struct Shelf {
    path: PathBuf,
    /// The most bytes of all files together (`limits.upstream_message`).
    limit: usize,
    dictionary: Dictionary,
    files: BTreeMap<PathBuf, Kept>,
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
struct Kept {
    stamp: Option<Stamp>,
    /// The stamp may stay the same although the content changes.
    young: bool,
    hash: Option<u128>,
    len: usize,
    good: Option<Sheet>,
    fault: Option<String>,
}

/// What one look at the files brought.
#[derive(Debug, Default)]
pub struct Found {
    /// Whether the content is another one than before.
    pub changed: bool,
    /// What is wrong now and was not before.
    pub new_faults: Vec<String>,
    /// What was left out of files that were read now.
    pub warnings: Vec<String>,
}

impl Shelf {
    /// The files at a path, of which none was looked at.
    #[must_use]
    pub fn new(path: &Path, limit: usize, dictionary: Dictionary) -> Self {
        Self {
            path: path.to_owned(),
            limit,
            dictionary,
            files: BTreeMap::new(),
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

    /// Looks at the files, and reads those that are not as they were.
    pub fn look(&mut self, now: Instant) -> Found {
        let mut found = Found::default();
        let mut faults = Vec::new();
        let mut changed = false;
        match self.list() {
            Ok(paths) => {
                let before = self.files.len();
                // A file that leaves a directory takes its resources with it.
                self.files.retain(|path, _| paths.binary_search(path).is_ok());
                changed |= self.files.len() != before;
                changed |= self.read(&paths, now, &mut found.warnings);
            }
            Err(fault) => faults.push(format!("{}: {fault}", self.path.display())),
        }
        for (path, kept) in &self.files {
            faults.extend(kept.fault.as_ref().map(|fault| within(path, fault)));
        }
        let sound = !self.files.is_empty() && faults.is_empty();
        let becomes_whole = sound && !self.sound && !self.content.whole();
        self.sound = sound;
        if changed || becomes_whole {
            found.changed = true;
            self.merge();
        }
        faults.extend(self.disputes.iter().cloned());
        found.new_faults = faults
            .iter()
            .filter(|fault| !self.faults.contains(fault))
            .cloned()
            .collect();
        self.faults = faults;
        found
    }

    /// The files that there are now, sorted.
    fn list(&self) -> Result<Vec<PathBuf>, String> {
        let metadata = std::fs::metadata(&self.path);
        if !metadata.map_err(|error| error.to_string())?.is_dir() {
            return Ok(vec![self.path.clone()]);
        }
        let mut paths = disk::list(&self.path)?;
        // What vanished since is not there, what leads nowhere is there and bad.
        paths.retain(|path| disk::exists(path));
        if paths.is_empty() {
            return Err(
                "no file in it ends in .yaml, .yml, .json, .pb or .pb_text; what was there before stays".to_owned(),
            );
        }
        Ok(paths)
    }

    /// Whether anything good is another than before.
    fn read(&mut self, paths: &[PathBuf], now: Instant, warnings: &mut Vec<String>) -> bool {
        let mut left = self.limit;
        let mut changed = false;
        for path in paths {
            let kept = self.files.entry(path.clone()).or_default();
            let stamp = Stamp::of(path);
            let same = stamp.is_ok() && kept.stamp == stamp.as_ref().ok().copied() && !kept.young;
            if same && kept.len <= left {
                left -= kept.len;
                continue;
            }
            changed |= kept.renew(path, left, &self.dictionary, now, warnings);
            left = left.saturating_sub(kept.len);
        }
        changed
    }

    fn merge(&mut self) {
        let paths: Vec<PathBuf> = self.files.keys().cloned().collect();
        let mut sheets: Vec<&mut [_]> = Vec::new();
        for kept in self.files.values_mut() {
            sheets.push(kept.good.as_mut().map_or(&mut [], |sheet| &mut sheet.resources));
        }
        let (content, twice) = Content::merge(&mut sheets, &self.content, self.sound);
        self.content = Arc::new(content);
        self.disputes = twice.iter().map(|twice| said(twice, &paths)).collect();
    }
}

impl Kept {
    /// Reads the file anew. Whether what is good of it is another than before.
    fn renew(
        &mut self,
        path: &Path,
        limit: usize,
        dictionary: &Dictionary,
        now: Instant,
        warnings: &mut Vec<String>,
    ) -> bool {
        let (stamp, content) = match disk::read(path, limit) {
            Ok(read) => read,
            Err(fault) => {
                self.stamp = None;
                self.hash = None;
                self.fault = Some(fault);
                return false;
            }
        };
        self.stamp = Some(stamp);
        self.young = stamp.is_young();
        self.len = content.len();
        let hash = Some(xxh3_128(&content));
        if self.hash == hash {
            return false;
        }
        self.hash = hash;
        match Sheet::parse(&content, Format::of(path), dictionary, now) {
            Ok(sheet) => {
                warnings.extend(
                    sheet
                        .warnings
                        .iter()
                        .map(|fault| fault.within(&path.display().to_string())),
                );
                self.good = Some(sheet);
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

fn said(twice: &Twice, paths: &[PathBuf]) -> String {
    let called = |file: usize, place: Option<crate::json::Place>| {
        let path = paths
            .get(file)
            .map(|path| path.display().to_string())
            .unwrap_or_default();
        place.map_or(path.clone(), |place| format!("{path}:{place}"))
    };
    let first = called(twice.first, twice.first_place);
    let here = called(twice.file, twice.place);
    format!(
        "{here}: {} is already in {first}, with other content; remove one",
        twice.name
    )
}
