// SPDX-License-Identifier: Apache-2.0
//! Files that a story's relay reads: a directory of its own, on a real disk.
//!
//! ```text
//! only a.yaml                      # first line only: this file is the source, not the directory
//! put a.yaml cds a@1 b@1:ttl=10s   # moves a file with this content into place
//! text a.yaml resources: []        # moves a file with this text into place
//! tear a.yaml | fill a.yaml        # half of it is left; it is over the size limit
//! remove a.yaml | rename a.yaml b.yaml
//! mount ..1 a.yaml cds a@1, b.yaml cds b@1   # swaps the directory behind `..data`, as a ConfigMap does
//! say WORDS | are good             # the one fault at present contains these words; there is no fault
//! ```
//!
//! Owns the files. Knows nothing of clients.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use distributary::json::{Schemas, Unknown};
use distributary::upstream::{Dictionary, FileSet, FileWants};
use distributary::xds::{Changes, Cut, ServerState, Target, TypeUrl, Types, Want};

use crate::origin::Changed;
use crate::text::{Spec, type_url};

pub(crate) struct Folder {
    path: PathBuf,
    /// The one file that is the source.
    only: Option<String>,
    file_set: FileSet,
    asked: FileWants,
    fresh: Vec<Want>,
}

/// The size limit of a source.
const LIMIT: usize = 64 * 1024;

impl Folder {
    pub(crate) fn new() -> Self {
        static LAST: AtomicU32 = AtomicU32::new(0);
        let number = LAST.fetch_add(1, Ordering::Relaxed);
        let name = format!("story-{}-{number}", std::process::id());
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::create_dir_all(&path).expect("a directory");
        Self {
            file_set: file_set(&path),
            path,
            only: None,
            asked: FileWants::default(),
            fresh: Vec::new(),
        }
    }

    pub(crate) fn line(&mut self, line: &str) {
        let (verb, rest) = line.split_once(' ').unwrap_or((line, ""));
        let words: Vec<&str> = rest.split_whitespace().collect();
        match (verb, words.as_slice()) {
            ("only", [file]) => {
                self.only = Some((*file).to_owned());
                self.forget();
            }
            ("put", [file, topic, specs @ ..]) => self.place(file, &written(topic, specs)),
            ("text", [file, ..]) => self.place(file, rest.split_once(' ').expect("a text").1),
            ("tear", [file]) => {
                let text = std::fs::read_to_string(self.path.join(file)).expect("a file");
                self.place(file, &text[..text.len() / 2]);
            }
            ("fill", [file]) => {
                let text = std::fs::read_to_string(self.path.join(file)).expect("a file");
                self.place(file, &("#".repeat(LIMIT) + "\n" + &text));
            }
            ("remove", [file]) => std::fs::remove_file(self.path.join(file)).expect("a file"),
            ("rename", [from, to]) => {
                std::fs::rename(self.path.join(from), self.path.join(to)).expect("a file");
            }
            ("mount", [version, ..]) => self.mount(version, rest.split_once(' ').expect("files").1),
            ("say", _) => {
                let faults = self.file_set.faults();
                assert!(faults.len() == 1 && faults[0].contains(rest), "{rest}: {faults:?}");
            }
            ("are", ["good"]) => assert!(self.file_set.faults().is_empty(), "{:?}", self.file_set.faults()),
            other => panic!("files do not know {other:?}"),
        }
    }

    fn place(&self, file: &str, text: &str) {
        let from = self.path.join(".new");
        std::fs::write(&from, text).expect("a file");
        std::fs::rename(from, self.path.join(file)).expect("a file");
    }

    /// I-04: as Kubernetes does it; the first time it also creates the symlinks of the files.
    fn mount(&self, version: &str, files: &str) {
        std::fs::create_dir(self.path.join(version)).expect("a directory");
        for file in files.split(',') {
            let words: Vec<&str> = file.split_whitespace().collect();
            let [file, topic, specs @ ..] = words.as_slice() else {
                panic!("`{file}` is no file");
            };
            self.place(&format!("{version}/{file}"), &written(topic, specs));
            let link = self.path.join(file);
            if std::fs::symlink_metadata(&link).is_err() {
                symlink(format!("..data/{file}"), link).expect("a symlink");
            }
        }
        symlink(version, self.path.join("..data_tmp")).expect("a symlink");
        std::fs::rename(self.path.join("..data_tmp"), self.path.join("..data")).expect("a symlink");
    }

    /// The relay starts anew.
    pub(crate) fn forget(&mut self) {
        let source = self
            .only
            .as_ref()
            .map_or(self.path.clone(), |only| self.path.join(only));
        self.file_set = file_set(&source);
        self.asked = FileWants::default();
        self.fresh.clear();
    }

    pub(crate) fn want(&mut self, type_url: TypeUrl, target: Target) {
        self.fresh.push(Want {
            type_url,
            target,
            wanted: true,
            written: None,
        });
    }

    /// When the next time to live ends.
    pub(crate) fn ends(&self) -> Option<Instant> {
        self.file_set.ends()
    }

    /// Reads the files, and updates the view.
    pub(crate) fn tell(&mut self, cut: &Cut, now: Instant) -> (Cut, Vec<Changed>) {
        let found = self.file_set.look(now);
        let content = self.file_set.content().clone();
        let server_state = if content.whole() {
            ServerState::Up
        } else {
            ServerState::Failing
        };
        let mut cut = cut.with_server_state(server_state);
        let mut changed = Vec::new();
        let mut bring = |cut: &mut Cut, changes: Vec<Changes>| {
            for change in changes {
                let (next, names) = cut.with(&change);
                *cut = next;
                if !change.updates.is_empty() || change.complete.is_some() {
                    changed.push((change.type_url, names));
                }
            }
        };
        let wants = std::mem::take(&mut self.fresh);
        if !wants.is_empty() {
            let changes = self.asked.handle_wants(&wants, &content, &cut);
            bring(&mut cut, changes);
        }
        if found.changed {
            let changes = self.asked.handle_content(&content, &cut);
            bring(&mut cut, changes);
        }
        (cut, changed)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

fn file_set(path: &Path) -> FileSet {
    let dictionary = Dictionary {
        schemas: Schemas::standard(),
        unknown: Unknown::Deny,
        types: Types::default(),
    };
    FileSet::new(path, LIMIT, dictionary)
}

/// Clusters or listeners, as people write them in YAML.
fn written(topic: &str, specs: &[&str]) -> String {
    let url = type_url(topic).url().to_owned();
    let label = match topic {
        "cds" => "alt_stat_name",
        "lds" => "stat_prefix",
        other => panic!("files of stories have no {other}"),
    };
    let mut text = "resources:\n".to_owned();
    for spec in specs.iter().map(|spec| Spec::parse(spec)) {
        let ttl = spec
            .ttl
            .map_or(String::new(), |ttl| format!(", ttl: {}s", ttl.as_secs()));
        text += &format!(
            "- {{ '@type': type.googleapis.com/envoy.service.discovery.v3.Resource, name: {0}{ttl}, resource: {{ '@type': {url}, name: {0}, {label}: '{1}' }} }}\n",
            spec.name, spec.label
        );
    }
    text
}
