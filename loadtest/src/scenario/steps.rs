//! What stories have in common: waiting for things, with a deadline, and counting what a fleet was sent meanwhile.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use tokio::time::sleep;

use super::now;
use crate::arguments::Arguments;
use crate::client::profile::Profile;
use crate::connection::Target;
use crate::control_plane::ControlPlane;
use crate::findings::Findings;
use crate::fleet::{Crew, Fleet, Plan};
use crate::kind::Dialect;
use crate::ledger::Ledger;
use crate::relay::Relay;
use crate::tally::Tally;
use crate::world::World;

const POLL: Duration = Duration::from_millis(5);

/// How much a fleet was sent until some moment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    pub(super) messages: u64,
    pub(super) named: u64,
}

impl Sent {
    pub(super) fn to(fleet: &Fleet) -> Self {
        Self {
            messages: fleet.progress.messages(),
            named: fleet.progress.named(),
        }
    }

    /// What was sent since then.
    pub(super) fn since(self, fleet: &Fleet) -> Self {
        Self {
            messages: fleet.progress.messages() - self.messages,
            named: fleet.progress.named() - self.named,
        }
    }
}

/// A plan for a fleet that speaks delta.
pub(super) fn plan(arguments: &Arguments, server: SocketAddr, ledger: &Arc<Ledger>) -> Plan {
    Plan {
        target: Target { server, tls: None },
        clients: arguments.clients(),
        per_connection: 1,
        world: World::of(Arc::clone(ledger)),
        crew: Crew::of(Profile::plain(Dialect::Delta, ledger.kind(), arguments.names)),
    }
}

/// Waits until `done`, a violation, or the deadline; returns how long it took.
pub(super) async fn until(
    arguments: &Arguments,
    what: &str,
    fleet: &Fleet,
    done: impl Fn() -> bool,
) -> anyhow::Result<Duration> {
    let begin = now();
    while !done() {
        sound(fleet)?;
        if begin.elapsed() > arguments.deadline {
            bail!("{what}: not within {:?} (--deadline)", arguments.deadline);
        }
        sleep(POLL).await;
    }
    Ok(begin.elapsed())
}

/// Waits until one of the relay's gauges is as it must be; returns how long it took.
pub(super) async fn until_gauge(
    arguments: &Arguments,
    relay: &Relay,
    (gauge, label): (&str, &str),
    done: impl Fn(f64) -> bool,
) -> anyhow::Result<Duration> {
    let begin = now();
    while !done(relay.metrics().await?.of(gauge, label)) {
        if begin.elapsed() > arguments.deadline {
            bail!(
                "{gauge}{{{label}}} of the relay: not within {:?} (--deadline)",
                arguments.deadline
            );
        }
        sleep(POLL).await;
    }
    Ok(begin.elapsed())
}

/// The same for the sum over all series of one name.
pub(super) async fn until_sum(
    arguments: &Arguments,
    relay: &Relay,
    name: &str,
    done: impl Fn(f64) -> bool,
) -> anyhow::Result<Duration> {
    let begin = now();
    while !done(relay.metrics().await?.sum(name).unwrap_or_default()) {
        if begin.elapsed() > arguments.deadline {
            bail!("{name} of the relay: not within {:?} (--deadline)", arguments.deadline);
        }
        sleep(POLL).await;
    }
    Ok(begin.elapsed())
}

/// Waits until nobody was sent anything for `--idle`, and says what was sent since `since`.
pub(super) async fn quiet(arguments: &Arguments, fleet: &Fleet, since: Sent) -> anyhow::Result<Sent> {
    let begin = now();
    loop {
        let before = fleet.progress.messages();
        sleep(arguments.idle).await;
        sound(fleet)?;
        if fleet.progress.messages() == before {
            return Ok(since.since(fleet));
        }
        if begin.elapsed() > arguments.deadline {
            bail!("messages do not cease within {:?} (--deadline)", arguments.deadline);
        }
    }
}

fn sound(fleet: &Fleet) -> anyhow::Result<()> {
    if fleet.progress.violated() > 0 {
        bail!("{} clients saw violations", fleet.progress.violated());
    }
    Ok(())
}

/// Lets everybody in and waits until all hold everything.
pub(super) async fn join(arguments: &Arguments, fleet: &Fleet, clients: u32) -> anyhow::Result<Duration> {
    fleet.admit(clients);
    until(arguments, "everybody's full state", fleet, || {
        fleet.progress.complete() >= clients
    })
    .await
}

/// Ends a fleet after a last look at what each client holds.
pub(super) fn finish(fleet: Fleet, findings: &mut Findings) -> anyhow::Result<Tally> {
    let progress = Arc::clone(&fleet.progress);
    let tally = fleet.stop().context("the clients")?;
    progress
        .violations()
        .into_iter()
        .for_each(|breach| findings.breach(breach));
    Ok(tally)
}

/// What was rejected upstream, which nothing should be.
pub(super) fn rejections(control_plane: &ControlPlane, findings: &mut Findings) {
    for rejection in control_plane.counts.rejections() {
        findings.fail(format!("a response was rejected upstream: {rejection}"));
    }
}
