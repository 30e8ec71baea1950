// SPDX-License-Identifier: Apache-2.0
//! What is wrong with the files that a configuration names, and with files of resources.
//!
//! Owns which files are read before a start, and how what is wrong with them is said. Starts nothing.

use std::path::{Path, PathBuf};

use super::plan::{dictionary, file_bytes};
use crate::clock;
use crate::config::{Config, Credentials, KeySource, Reach, Server, Tls};
use crate::json::{Schemas, Unknown};
use crate::small_file;
use crate::tls::{self, ServerTls};
use crate::token::Tokens;
use crate::upstream::{Dictionary, FileSet};
use crate::wire::owners;
use crate::xds::{Access, TypeUrl, Types};

/// What is wrong with files.
#[derive(Debug)]
pub struct Inspection {
    /// What keeps the relay from running as configured.
    pub problems: Vec<String>,
    /// What does not.
    pub warnings: Vec<String>,
    /// What lines about the configuration begin with.
    origin: String,
    /// Whether it may be said what is in the files.
    tells: bool,
    dictionary: Dictionary,
    /// The most bytes of the files of one source.
    bytes_max: usize,
}

impl Inspection {
    /// Reads all files that a configuration names, and files of resources.
    #[must_use]
    pub fn of(file: Option<&Path>, config: Option<&Config>, resources: &[PathBuf]) -> Self {
        let mut found = match config {
            Some(config) => Self::without_resources(file, config),
            None => Self::new(file, None),
        };
        for server in config.iter().flat_map(|config| &config.upstream.servers) {
            if let Reach::Files(path) = &server.reach {
                found.resources(
                    path,
                    &format!("server {}: ", server.uri),
                    config.map(|config| &*config.access),
                );
            }
        }
        for path in resources {
            found.resources(path, "", config.map(|config| &*config.access));
        }
        found
    }

    /// Reads all files that a configuration names, except those of resources.
    pub(super) fn without_resources(file: Option<&Path>, config: &Config) -> Self {
        let mut found = Self::new(file, Some(config));
        found.all(config);
        found
    }

    /// Looks for all files that a text names which somebody has sent. Of those of resources and of descriptors nothing is read, of the
    /// others it is not said what is in them.
    pub(super) fn of_sent(origin: &str, config: &mut Config) -> Self {
        let descriptors = std::mem::take(&mut config.descriptors);
        let mut found = Self::new(Some(Path::new(origin)), Some(config));
        found.tells = false;
        found.all(config);
        config.descriptors = descriptors;
        let resources = config.upstream.servers.iter().filter_map(|server| match &server.reach {
            Reach::Files(path) => Some(path),
            Reach::Grpc(_) | Reach::Rest(_) => None,
        });
        for path in config.descriptors.iter().chain(resources) {
            if let Err(error) = std::fs::metadata(path) {
                found.problem(&format!("{}: cannot be read: {error}", path.display()));
            }
        }
        found
    }

    fn all(&mut self, config: &Config) {
        self.listeners(config);
        self.issuers(config);
        for server in &config.upstream.servers {
            self.server(server);
        }
        self.snapshot(config);
    }

    /// Looks at nothing but the descriptors, which all files of resources need.
    fn new(file: Option<&Path>, config: Option<&Config>) -> Self {
        let origin = file.map_or_else(String::new, |file| format!("{}: ", file.display()));
        let descriptors = config.map_or(&[][..], |config| &config.descriptors);
        let read = Schemas::with_files(descriptors);
        let problems = read.as_ref().err().map(|error| format!("{origin}descriptors: {error}"));
        let schemas = read.unwrap_or_default();
        Self {
            dictionary: match config {
                Some(config) => dictionary(config, schemas),
                None => Dictionary {
                    schemas,
                    unknown: Unknown::Deny,
                    types: Types::default(),
                },
            },
            bytes_max: config.map_or(usize::MAX, file_bytes),
            problems: problems.into_iter().collect(),
            warnings: Vec::new(),
            origin,
            tells: true,
        }
    }

    fn problem(&mut self, what: &str) {
        self.problems.push(format!("{}{what}", self.origin));
    }

    fn warning(&mut self, what: &str) {
        self.warnings.push(format!("{}{what}", self.origin));
    }

    fn listeners(&mut self, config: &Config) {
        for (at, listener) in config.listeners.iter().enumerate() {
            if let Err(error) = owners(&listener.file) {
                self.problem(&format!("listeners[{at}]: {error}"));
            }
        }
        let listeners = config.listeners.iter().enumerate();
        let listeners =
            listeners.filter_map(|(at, listener)| Some((format!("listeners[{at}].tls"), listener.tls.as_ref()?)));
        let admin = config.admin_tls.as_ref().map(|tls| ("admin.tls".to_owned(), tls));
        for (key, tls) in listeners.chain(admin) {
            match ServerTls::read(tls, &[]) {
                Ok(read) => {
                    for warning in read.warnings() {
                        self.warning(&format!("{key}: {warning}"));
                    }
                }
                Err(error) => self.problem(&format!("{key}: {error}")),
            }
        }
    }

    fn issuers(&mut self, config: &Config) {
        for (at, issuer) in config.issuers.iter().enumerate() {
            match Tokens::read(std::slice::from_ref(issuer)) {
                Ok(tokens) => {
                    for warning in tokens.warnings() {
                        self.warning(&format!("jwt[{at}]: {warning}"));
                    }
                }
                Err(error) if self.tells => self.problem(&format!("jwt[{at}]: {error}")),
                Err(_) => self.problem(&format!("jwt[{at}]: its keys cannot be used")),
            }
            let KeySource::Uri(from) = &issuer.keys else {
                continue;
            };
            // They are fetched when the relay runs; what is needed for that is here.
            if let Credentials::Tls(settings) = &from.credentials {
                self.credentials(settings, &format!("jwt[{at}]: "));
            }
            let token = from.token_file.iter();
            let token = token.filter_map(|path| Some((path, small_file::read(path, small_file::BYTES_MAX).err()?)));
            for (path, error) in token.collect::<Vec<_>>() {
                self.problem(&format!("jwt[{at}]: {}: cannot be read: {error}", path.display()));
            }
        }
    }

    /// Checks the files that the relay would read later, or for each connection.
    fn server(&mut self, server: &Server) {
        let key = format!("server {}: ", server.uri);
        let (credentials, token) = match &server.reach {
            Reach::Grpc(grpc) => (&grpc.credentials, &grpc.token),
            Reach::Rest(rest) => (&rest.credentials, &rest.token),
            Reach::Files(_) => return,
        };
        if let Credentials::Tls(settings) = credentials {
            self.credentials(settings, &key);
        }
        if let Some(path) = token
            && let Err(error) = small_file::read(path, small_file::BYTES_MAX)
        {
            self.problem(&format!("{key}{}: cannot be read: {error}", path.display()));
        }
    }

    fn credentials(&mut self, settings: &Tls, key: &str) {
        let (faults, warnings) = tls::inspect(settings);
        for fault in faults {
            self.problem(&format!("{key}{fault}"));
        }
        for warning in warnings {
            self.warning(&format!("{key}{warning}"));
        }
    }

    /// Reads the files of resources at a path. Their faults begin with the file and the place, as an editor wants them.
    fn resources(&mut self, path: &Path, key: &str, access: Option<&Access>) {
        if let Err(error) = std::fs::metadata(path) {
            return self.problem(&format!("{key}{}: cannot be read: {error}", path.display()));
        }
        let mut files = FileSet::new(path, self.bytes_max, self.dictionary.clone());
        let found = files.look(clock::now());
        self.problems.extend(files.faults().iter().cloned());
        self.warnings.extend(found.warnings);
        let withheld = |type_url: &&TypeUrl| access.is_some_and(|access| !access.serves(type_url));
        for type_url in files.content().types().filter(withheld) {
            let cure = if type_url.kind().is_secret() {
                "write a rule with `types: sds`, or set `secrets: allow`"
            } else {
                "write a rule that allows this type, or take them out of the file"
            };
            self.warning(&format!(
                "{key}{}: no client may have the resources of type {type_url}; {cure}",
                path.display()
            ));
        }
    }

    fn snapshot(&mut self, config: &Config) {
        let neighbours = config.snapshot.iter().flat_map(|snapshot| &snapshot.from);
        let tls = neighbours.filter_map(|neighbour| match &neighbour.credentials {
            Credentials::Tls(tls) => Some(tls),
            Credentials::Insecure => None,
        });
        // All have the same.
        if let Some(tls) = tls.into_iter().next() {
            self.credentials(tls, "snapshot.tls: ");
        }
        let dir = config.snapshot.as_ref().and_then(|snapshot| snapshot.dir.as_ref());
        if let Some(dir) = dir.filter(|dir| dir.exists() && !dir.is_dir()) {
            self.problem(&format!("snapshot.dir: {} is not a directory", dir.display()));
        }
    }
}
