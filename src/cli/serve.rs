// SPDX-License-Identifier: Apache-2.0
//! `distributary serve`: runs the relay.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context as _, Error};
use clap::Args;

use super::Misuse;
use crate::app::{self, Origin};
use crate::config::{Flags, LogFilter};
use crate::telemetry::{LogFormat, ProcessLog};

const LISTEN: &str = "DISTRIBUTARY_LISTEN";
const UPSTREAM: &str = "DISTRIBUTARY_UPSTREAM";
const ADMIN: &str = "DISTRIBUTARY_ADMIN_LISTEN";
/// What this was called before. For all other commands it says which relays they ask.
const OLD_ADMIN: &str = "DISTRIBUTARY_ADMIN";
const SECRETS: &str = "DISTRIBUTARY_SECRETS";
const LOG_LEVEL: &str = "DISTRIBUTARY_LOG_LEVEL";

/// Run the relay. A flag overrides its environment variable, which overrides the file, which overrides the default.
#[derive(Debug, Args)]
pub(super) struct Serve {
    /// The configuration file
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// The same, as a flag
    #[arg(short, long, value_name = "FILE", env = "DISTRIBUTARY_CONFIG")]
    config: Option<PathBuf>,
    /// Where clients connect: ip:port, [v6]:port or unix:/path; repeat for more [default: 127.0.0.1:15010]
    #[arg(short, long, value_name = "ADDRESS", env = LISTEN, value_delimiter = ',')]
    listen: Vec<String>,
    /// A control plane: host:port, http(s)://host:port or unix:/path; repeat in order of priority
    #[arg(short, long, value_name = "URI", env = UPSTREAM, value_delimiter = ',')]
    upstream: Vec<String>,
    /// The admin address, for probes and metrics [default: 127.0.0.1:9901]
    #[arg(short, long, value_name = "ADDRESS", env = ADMIN)]
    admin: Option<String>,
    /// allow or by_rule: whether secrets (SDS) are served without a rule that names them [default: by_rule]
    #[arg(long, value_name = "HOW", env = SECRETS)]
    secrets: Option<String>,
    /// error, warn, info, debug, trace, or target=level,... [default: RUST_LOG, else `logging.level` of the file, else info]
    #[arg(long, value_name = "LEVEL", env = LOG_LEVEL)]
    log_level: Option<String>,
    /// text or json
    #[arg(long, value_name = "FORMAT", env = "DISTRIBUTARY_LOG_FORMAT", default_value = "text")]
    log_format: LogFormat,
}

impl Serve {
    /// Returns the configuration file. One on the command line replaces that of the environment.
    fn named(&self) -> Result<Option<PathBuf>, Misuse> {
        let of_environment = std::env::var_os("DISTRIBUTARY_CONFIG").map(PathBuf::from);
        match (&self.file, &self.config) {
            (Some(file), Some(config)) if of_environment.as_ref() != Some(config) => Err(Misuse(format!(
                "the configuration is named twice: {} and --config {}",
                file.display(),
                config.display()
            ))),
            (Some(file), _) => Ok(Some(file.clone())),
            (None, config) => Ok(config.clone()),
        }
    }

    /// Returns which flags have their values from which variables.
    fn variables(&self, old_admin: bool) -> BTreeMap<&'static str, &'static str> {
        let admin = if old_admin { OLD_ADMIN } else { ADMIN };
        let all = [
            ("--listen", LISTEN, Some(self.listen.join(","))),
            ("--upstream", UPSTREAM, Some(self.upstream.join(","))),
            ("--admin", admin, self.admin.clone()),
            ("--secrets", SECRETS, self.secrets.clone()),
            ("--log-level", LOG_LEVEL, self.log_level.clone()),
        ];
        let of_environment = |(_, variable, value): &(_, &str, Option<String>)| {
            value
                .as_ref()
                .is_some_and(|value| std::env::var(variable).as_ref() == Ok(value))
        };
        let found = all.into_iter().filter(of_environment);
        found.map(|(flag, variable, _)| (flag, variable)).collect()
    }

    pub(super) fn run(mut self) -> anyhow::Result<()> {
        let file = self.named()?;
        let old_admin = std::env::var(OLD_ADMIN).ok().filter(|old| !old.is_empty());
        let old_admin = old_admin.filter(|_| self.admin.is_none());
        self.admin = self.admin.or_else(|| old_admin.clone());
        let variables = self.variables(old_admin.is_some());
        let level = self.log_level.or_else(|| std::env::var("RUST_LOG").ok());
        let level = level.filter(|level| !level.is_empty());
        let filter = level.as_deref().map(LogFilter::parse).transpose().map_err(Error::msg)?;
        let log = ProcessLog::start(filter.unwrap_or_default().as_str(), self.log_format)?;
        let flags = Flags {
            listen: self.listen,
            upstream: self.upstream,
            admin: self.admin,
            secrets: self.secrets,
            log_level: level,
            variables,
            ..Flags::of_environment()
        };
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .context("cannot start the worker threads")?;
        let (hang_ups, others) = {
            let _runtime = runtime.enter();
            app::signals()?
        };
        runtime.spawn(others);
        let (origin, config) = Origin::load(file, flags, hang_ups)?;
        log.set(config.log_filter.as_str())?;
        if let Some(old) = old_admin {
            tracing::warn!(
                "{OLD_ADMIN}={old} is taken for the relay's own admin address; set {ADMIN} instead: from the next minor version on, the \
                 former only says which relays other commands ask"
            );
        }
        for warning in &config.warnings {
            tracing::warn!("{warning}");
        }
        runtime.block_on(app::run(config, origin, log))?;
        Ok(())
    }
}
