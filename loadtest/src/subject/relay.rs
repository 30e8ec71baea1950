// SPDX-License-Identifier: Apache-2.0
//! The relay under test as a child process, so that its processor time and memory are separate from the tool's own. By default it
//! is this program, started again with a hidden first argument.

use std::ffi::OsString;
use std::io::Write as _;
use std::iter::once;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Duration;

use anyhow::{Context as _, bail};
use rustix::process::{Pid, Signal, kill_process, set_parent_process_death_signal};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use crate::measure::process::Process;
use crate::measure::scrape;

/// The hidden first argument that starts this program as the relay.
pub(crate) const ENTRY: &str = "be-the-relay";

/// Runs the relay in this process, which ends when its parent ends.
pub(crate) fn run(args: impl Iterator<Item = OsString>) -> ExitCode {
    if set_parent_process_death_signal(Some(Signal::KILL)).is_err() {
        return ExitCode::FAILURE;
    }
    distributary::cli::main(once(OsString::from("distributary")).chain(args))
}

/// A running relay. Dropping it ends the process.
pub(crate) struct Relay {
    child: Child,
    pub(crate) address: SocketAddr,
    admin: SocketAddr,
}

/// How a relay is started.
#[derive(Clone, Debug)]
pub(crate) struct Launch<'a> {
    /// A program to run in the place of this one.
    pub(crate) program: Option<&'a Path>,
    /// The address to listen on.
    pub(crate) listen: SocketAddr,
    /// Whether the configuration has the listener already.
    pub(crate) listens: bool,
    pub(crate) source: Source,
    /// Whether it logs no warnings, because things fail on purpose.
    pub(crate) quiet: bool,
}

/// How a relay learns of its control planes.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    /// One control plane with this URI.
    Upstream(String),
    /// The text of a configuration file.
    Config(String),
}

/// How long the relay may take until it is live.
const START_MAX: Duration = Duration::from_secs(20);
/// How long it may take to stop after a signal.
const END_MAX: Duration = Duration::from_secs(3);
const POLL: Duration = Duration::from_millis(10);
/// After so many waits the signal is sent again.
const AGAIN: u128 = 20;

impl Relay {
    /// Starts a relay and waits until it is live.
    pub(crate) async fn start(launch: &Launch<'_>) -> anyhow::Result<Self> {
        let address = launch.listen;
        let mut admin = free_address()?;
        while admin == address {
            admin = free_address()?;
        }
        let mut command = match launch.program {
            Some(program) => Command::new(program),
            None => {
                let mut command = Command::new(std::env::current_exe()?);
                command.arg(ENTRY);
                command
            }
        };
        command
            .arg("serve")
            .args(["--admin", &admin.to_string()])
            .args(["--log-level", if launch.quiet { "error" } else { "warn" }])
            .stdin(Stdio::piped());
        if !launch.listens {
            command.args(["--listen", &address.to_string()]);
        }
        match &launch.source {
            Source::Upstream(upstream) => command.args(["--upstream", upstream]),
            Source::Config(_) => command.args(["--config", "/dev/stdin"]),
        };
        // The user's environment may configure another relay, and must not affect this one.
        for (key, _) in std::env::vars_os().filter(|(key, _)| key.to_string_lossy().starts_with("DISTRIBUTARY_")) {
            command.env_remove(key);
        }
        let mut child = command
            .spawn()
            .with_context(|| format!("cannot start the relay: {command:?}"))?;
        // Its standard input is closed here, with or without a configuration.
        if let (Some(mut input), Source::Config(text)) = (child.stdin.take(), &launch.source) {
            input.write_all(text.as_bytes())?;
        }
        let mut relay = Self { child, address, admin };
        timeout(START_MAX, relay.come_up())
            .await
            .with_context(|| format!("the relay's admin port {admin} does not answer within {START_MAX:?}"))??;
        Ok(relay)
    }

    async fn come_up(&mut self) -> anyhow::Result<()> {
        // It may be live a moment before it listens for clients.
        while scrape::get(self.admin, "/live").await.is_err() || TcpStream::connect(self.address).await.is_err() {
            if let Some(status) = self.child.try_wait()? {
                bail!("the relay exited before it was live: {status}");
            }
            sleep(POLL).await;
        }
        Ok(())
    }

    /// Kills it at once, so that it cannot close its streams.
    pub(crate) fn kill(mut self) -> anyhow::Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    pub(crate) fn process(&self) -> Process {
        Process::of(self.child.id())
    }

    /// Where its admin address is.
    pub(crate) const fn admin(&self) -> SocketAddr {
        self.admin
    }

    /// Reads the relay's own counters.
    pub(crate) async fn metrics(&self) -> anyhow::Result<scrape::Metrics> {
        Ok(scrape::Metrics::parse(&scrape::get(self.admin, "/metrics").await?))
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        // The first signal drains the clients one after the other; the second one stops the relay at once, but still cleanly.
        for turn in 0..END_MAX.as_millis() / POLL.as_millis() {
            if let Some(pid) = pid.filter(|_| turn % AGAIN == 0) {
                let _ = kill_process(pid, Signal::INT);
            }
            if matches!(self.child.try_wait(), Ok(Some(_))) {
                return;
            }
            std::thread::sleep(POLL);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns an address of this machine that was free a moment ago.
pub(crate) fn free_address() -> anyhow::Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0").context("no free port on 127.0.0.1")?;
    Ok(listener.local_addr()?)
}
