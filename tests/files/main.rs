// SPDX-License-Identifier: Apache-2.0
//! Files as a source: what they may contain, how bad ones are handled, and when a change is seen.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

mod asked;
mod file_sets;
mod hostile;
mod lives;
mod parsed_files;
mod random;
mod watching;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use distributary::json::{Fault, Schemas, Unknown};
use distributary::upstream::{Dictionary, FileChanges, FileFormat, FileSet, ParsedFile};
use distributary::xds::{Name, TypeUrl, Types};

const MIB: usize = 1024 * 1024;

#[expect(clippy::disallowed_methods, reason = "some instant to begin from")]
fn now() -> Instant {
    Instant::now()
}

fn dictionary() -> Dictionary {
    Dictionary {
        schemas: Schemas::standard(),
        unknown: Unknown::Deny,
        types: Types::default(),
    }
}

fn parse(text: &str, format: FileFormat) -> Result<Vec<String>, Fault> {
    parse_with(text.as_bytes(), format, &dictionary())
}

/// Parses a file and returns each resource as its type and name.
fn parse_with(text: &[u8], format: FileFormat, dictionary: &Dictionary) -> Result<Vec<String>, Fault> {
    let parsed = ParsedFile::parse(text, format, dictionary, now()).map_err(|faults| faults[0].clone())?;
    let said = parsed.resources.iter();
    Ok(said
        .map(|one| format!("{:?} {}", one.type_url, one.resource.name()))
        .collect())
}

fn cds() -> TypeUrl {
    TypeUrl::new("envoy.config.cluster.v3.Cluster")
}

fn eds() -> TypeUrl {
    TypeUrl::new("envoy.config.endpoint.v3.ClusterLoadAssignment")
}

/// A list of clusters in YAML; a name may have a statistics name behind a slash, so that its content differs.
fn clusters(names: &[&str]) -> String {
    let mut text = "resources:\n".to_owned();
    if names.is_empty() {
        text = "resources: []\n".to_owned();
    }
    for name in names {
        let (name, stat) = name.split_once('/').unwrap_or((name, "x"));
        text += &format!(
            "- '@type': type.googleapis.com/envoy.config.cluster.v3.Cluster\n  name: {name}\n  alt_stat_name: {stat}\n"
        );
    }
    text
}

/// A folder for one test, which is removed at its end.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static LAST: AtomicU32 = AtomicU32::new(0);
        let number = LAST.fetch_add(1, Ordering::Relaxed);
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("files-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        std::fs::write(self.path(name), text).unwrap();
        self.path(name)
    }

    /// Writes to another path and moves the file into place.
    fn place(&self, name: &str, text: &str) {
        let from = self.write(&format!(".{name}.tmp"), text);
        std::fs::rename(from, self.path(name)).unwrap();
    }

    fn remove(&self, name: &str) {
        std::fs::remove_file(self.path(name)).unwrap();
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn file_set(path: &Path) -> FileSet {
    FileSet::new(path, MIB, dictionary())
}

/// Looks at the files, and returns each cluster with its content.
fn look(file_set: &mut FileSet) -> (Vec<String>, FileChanges) {
    let found = file_set.look(now());
    let content = file_set.content();
    let type_url = cds();
    let clusters = content.covered(&type_url);
    let shown = clusters.map(|cluster| {
        let body = String::from_utf8_lossy(&cluster.body()).into_owned();
        let stat: String = body.chars().filter(|c| c.is_ascii_alphanumeric()).collect();
        let stat = stat.strip_prefix(cluster.name().as_str()).unwrap_or(&stat).to_owned();
        format!(
            "{}/{}",
            cluster.name(),
            stat.trim_start_matches(|c: char| !c.is_ascii_lowercase())
        )
    });
    (shown.collect(), found)
}

fn name(text: &str) -> Name {
    Name::from(text)
}

fn shared<T>(value: T) -> Arc<T> {
    Arc::new(value)
}
