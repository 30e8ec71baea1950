//! `distributary validate`: checks a configuration file, and the files that it names. Starts nothing.

use std::io::Write;
use std::path::PathBuf;

use anyhow::bail;
use clap::Args;

use crate::config::{Config, Credentials, Flags, Source};
use crate::json::Schemas;
use crate::tls;

/// Check a configuration file: prints OK, or what is wrong, with lines and columns
#[derive(Debug, Args)]
pub(super) struct Validate {
    /// The configuration file
    file: PathBuf,
}

impl Validate {
    pub(super) fn run(self, out: &mut impl Write, notes: &mut impl Write) -> anyhow::Result<()> {
        let config = Config::load(Some(&self.file), &Flags::of_environment())?;
        for warning in &config.warnings {
            writeln!(notes, "warning: {warning}")?;
        }
        let mut problems = Vec::new();
        for (at, listener) in config.listeners.iter().enumerate() {
            let key = format!("{}: listeners[{at}].tls", self.file.display());
            match listener.tls.as_ref().map(tls::listener).transpose() {
                Ok(offer) => {
                    if let Some(warning) = offer.and_then(|offer| offer.warning) {
                        writeln!(notes, "warning: {key}: {warning}")?;
                    }
                }
                Err(error) => problems.push(format!("{key}: {error}")),
            }
        }
        let missing = missing(&config).into_iter();
        problems.extend(missing.map(|problem| format!("{}: {problem}", self.file.display())));
        if !problems.is_empty() {
            bail!("{}", problems.join("\n"));
        }
        writeln!(out, "OK")?;
        Ok(())
    }
}

/// Returns what is wrong with the files that the relay would read later, or for each connection.
fn missing(config: &Config) -> Vec<String> {
    let mut problems = Vec::new();
    if let Err(error) = Schemas::with_files(&config.descriptors) {
        problems.push(format!("descriptors: {error}"));
    }
    for server in &config.upstream.servers {
        let mut wrong = |what: String| problems.push(format!("server {}: {what}", server.uri));
        let (credentials, token) = match &server.source {
            Source::Grpc(grpc) => (&grpc.credentials, &grpc.token),
            Source::Rest(rest) => (&rest.credentials, &rest.token),
            Source::Files(path) => {
                if let Err(error) = std::fs::metadata(path) {
                    wrong(format!("{}: cannot be read: {error}", path.display()));
                }
                continue;
            }
        };
        if let Credentials::Tls(settings) = credentials {
            let authorities = settings.ca_certificate_file.as_deref().map(tls::authorities);
            if let Some(Err(error)) = authorities {
                wrong(error.to_string());
            }
            if let Some(Err(error)) = settings.identity.as_ref().map(tls::identity) {
                wrong(error.to_string());
            }
        }
        if let Some(Err(error)) = token
            .as_ref()
            .map(|path| std::fs::read(path).map_err(|error| (path, error)))
        {
            wrong(format!("{}: cannot be read: {}", error.0.display(), error.1));
        }
    }
    let dir = config.snapshot.as_ref().map(|snapshot| &snapshot.dir);
    if let Some(dir) = dir.filter(|dir| dir.exists() && !dir.is_dir()) {
        problems.push(format!("snapshot.dir: {} is not a directory", dir.display()));
    }
    problems
}
