//! What all stories share: waiting for something with a deadline, and counting what a fleet was sent meanwhile.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use tokio::time::sleep;

use super::now;
use crate::command::arguments::Arguments;
use crate::fleet::client::profile::Profile;
use crate::fleet::client::saying::ON_PURPOSE;
use crate::fleet::crew::Crew;
use crate::fleet::progress::{Breach, Progress};
use crate::fleet::{Fleet, Plan};
use crate::measure::record::{Fleets, Recorder};
use crate::measure::shard::Shard;
use crate::measure::tally::Tally;
use crate::origin::control_plane::ControlPlane;
use crate::origin::ledger::Ledger;
use crate::origin::world::World;
use crate::subject::relay::Relay;
use crate::wire::kind::Dialect;
use crate::wire::place::Target;

const POLL: Duration = Duration::from_millis(5);

/// How much a fleet was sent up to some moment.
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

    /// Returns what was sent since then.
    pub(super) fn since(self, fleet: &Fleet) -> Self {
        Self {
            messages: fleet.progress.messages() - self.messages,
            named: fleet.progress.named() - self.named,
        }
    }
}

/// Begins a step of a story, as a phase of its own.
pub(super) fn begin(recorder: &Recorder, say: &mut impl FnMut(&str), what: &str) -> anyhow::Result<()> {
    say(what);
    recorder.begin(what, now())
}

/// Adds a fleet's counters to the record, and the deliveries owed to it; `world` only if no other fleet shares it.
pub(super) fn attach(recorder: &Recorder, fleet: &Fleet, world: Option<&World>) {
    let world = world.filter(|world| !world.is_foreign());
    let (progress, bell) = (Arc::clone(&fleet.progress), world.map(|world| Arc::clone(&world.bell)));
    recorder.attach(fleet.feeds.clone(), move || Fleets {
        clients: u64::from(progress.complete()),
        with_stream: progress.streaming(),
        owed: bell.as_ref().map(|bell| bell.owed()),
    });
}

/// Records a failure if a story did not complete.
pub(super) fn judge(recorder: &Recorder, story: &str, outcome: anyhow::Result<()>) {
    if let Err(error) = outcome {
        recorder.fail(&format!("{story} completes"), Some(format!("{error:#}")));
    }
}

/// Creates a plan for a fleet that speaks delta.
pub(super) fn plan(arguments: &Arguments, server: SocketAddr, ledger: &Arc<Ledger>) -> Plan {
    Plan {
        target: Target::local(server, None),
        clients: arguments.clients(),
        per_connection: 1,
        world: World::of(Arc::clone(ledger)),
        crew: Crew::of(Profile::plain(Dialect::Delta, ledger.kind(), arguments.names)),
        shard: Shard::WHOLE,
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
            bail!("{what}: not done within {:?} (--deadline)", arguments.deadline);
        }
        sleep(POLL).await;
    }
    Ok(begin.elapsed())
}

/// Waits until one of the relay's gauges has the wanted value; returns how long it took.
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
                "the relay's {gauge}{{{label}}} did not reach its value within {:?} (--deadline)",
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
            bail!(
                "the relay's {name} did not reach its value within {:?} (--deadline)",
                arguments.deadline
            );
        }
        sleep(POLL).await;
    }
    Ok(begin.elapsed())
}

/// Waits until no client was sent anything for `--idle`, and returns what was sent since `since`.
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
            bail!("clients still get messages after {:?} (--deadline)", arguments.deadline);
        }
    }
}

fn sound(fleet: &Fleet) -> anyhow::Result<()> {
    if fleet.progress.violated() > 0 {
        bail!("{} clients saw violations", fleet.progress.violated());
    }
    Ok(())
}

/// Lets all clients in and waits until they hold everything.
pub(super) async fn join(arguments: &Arguments, fleet: &Fleet, clients: u32) -> anyhow::Result<Duration> {
    fleet.admit(clients);
    until(arguments, "everybody's full state", fleet, || {
        fleet.progress.complete() >= clients
    })
    .await
}

/// Stops a fleet after a last check of what each client holds.
pub(super) fn finish(fleet: Fleet, recorder: &Recorder) -> anyhow::Result<Tally> {
    let progress = Arc::clone(&fleet.progress);
    let tally = fleet.stop().context("the clients")?;
    breaches(recorder, &progress);
    Ok(tally)
}

/// Records the violations that clients saw, each with the messages before it.
pub(super) fn breaches(recorder: &Recorder, progress: &Progress) {
    for Breach {
        client,
        what,
        transcript,
    } in progress.violations()
    {
        recorder.breach(u64::from(client), what, transcript);
    }
}

/// Fails if anything was rejected upstream, except by clients on purpose. A relay tells several contents in one text.
pub(super) fn rejections(control_plane: &ControlPlane, recorder: &Recorder) {
    let rejections = control_plane.counts.rejections();
    for rejection in rejections.into_iter().filter(|it| !is_on_purpose(it)) {
        recorder.fail("nothing is rejected upstream", Some(rejection));
    }
}

/// Whether all that a text names was rejected on purpose.
fn is_on_purpose(text: &str) -> bool {
    let is_rest = |part: &str| part.starts_with("and ") && part.ends_with(" more");
    let mut parts = text.split("; ");
    text.contains(ON_PURPOSE) && parts.all(|part| part.ends_with(ON_PURPOSE) || is_rest(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_rejected_on_purpose() {
        let told = format!("2 of 4 clients (envoy) reject clusters a, b: {ON_PURPOSE}; and 20 more");
        assert!(is_on_purpose(ON_PURPOSE) && is_on_purpose(&told));
        let other = format!("1 of 4 clients (envoy) rejects cluster c: no such filter; {told}");
        assert!(!is_on_purpose(&other) && !is_on_purpose("no") && !is_on_purpose(""));
    }
}
