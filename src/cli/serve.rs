//! `distributary serve`: runs the relay.

use std::path::PathBuf;

use anyhow::{Context as _, Error};
use clap::Args;

use super::Misuse;
use crate::app::{self, Origin};
use crate::config::{Flags, LogFilter};
use crate::telemetry::{Format, Log};

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
    #[arg(
        short,
        long,
        value_name = "ADDRESS",
        env = "DISTRIBUTARY_LISTEN",
        value_delimiter = ','
    )]
    listen: Vec<String>,
    /// A control plane: host:port, http(s)://host:port or unix:/path; repeat in order of priority
    #[arg(
        short,
        long,
        value_name = "URI",
        env = "DISTRIBUTARY_UPSTREAM",
        value_delimiter = ','
    )]
    upstream: Vec<String>,
    /// The admin address, for probes and metrics [default: 127.0.0.1:9901]
    #[arg(short, long, value_name = "ADDRESS", env = "DISTRIBUTARY_ADMIN")]
    admin: Option<String>,
    /// allow or by_rule: whether secrets (SDS) are served without a rule that names them [default: by_rule]
    #[arg(long, value_name = "HOW", env = "DISTRIBUTARY_SECRETS")]
    secrets: Option<String>,
    /// error, warn, info, debug, trace, or target=level,... [default: RUST_LOG, else `logging.level` of the file, else info]
    #[arg(long, value_name = "LEVEL", env = "DISTRIBUTARY_LOG_LEVEL")]
    log_level: Option<String>,
    /// text or json
    #[arg(long, value_name = "FORMAT", env = "DISTRIBUTARY_LOG_FORMAT", default_value = "text")]
    log_format: Format,
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

    pub(super) fn run(self) -> anyhow::Result<()> {
        let file = self.named()?;
        let level = self.log_level.or_else(|| std::env::var("RUST_LOG").ok());
        let level = level.filter(|level| !level.is_empty());
        let filter = level.as_deref().map(LogFilter::parse).transpose().map_err(Error::msg)?;
        let log = Log::start(filter.unwrap_or_default().as_str(), self.log_format)?;
        let flags = Flags {
            listen: self.listen,
            upstream: self.upstream,
            admin: self.admin,
            secrets: self.secrets,
            log_level: level,
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
        for warning in &config.warnings {
            tracing::warn!("{warning}");
        }
        runtime.block_on(app::run(config, origin, log))?;
        Ok(())
    }
}
