//! The first of two control planes fails and returns, twice: once with equal content, once with changes. The clients must be sent
//! exactly what differs for them; all messages are counted.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;

use super::steps::{self, Sent};
use super::{local, now, prepare};
use crate::command::arguments::Arguments;
use crate::fleet::{Fleet, Order, Plan, Wish};
use crate::measure::record::Recorder;
use crate::origin::control_plane::ControlPlane;
use crate::origin::ledger::{Ledger, Spec};
use crate::origin::world::World;
use crate::subject::relay::{Launch, Relay, Source};
use crate::wire::kind::Kind;

/// The form of the names, which decides what makes a session leave a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Leaves {
    /// Names of an authority with `fallback_on_reachability_only`: any failure (G-04).
    Unreachable,
    /// Old-style names: a failure while a resource is missing (G-03).
    Lacking,
}

impl Leaves {
    /// The title of the half of the story with such names.
    const fn title(self) -> &'static str {
        match self {
            // Everybody moves.
            Self::Unreachable => "authority",
            // Only clients that ask for more move.
            Self::Lacking => "old style",
        }
    }
}

const AUTHORITY: &str = "fleet.example.com";
/// One client in so many asks for what only the second control plane has.
const EVERY: u32 = 10;
const CONNECTED: &str = "distributary_upstream_connected";

/// The running parts; clients and relay are dropped before the control planes.
struct Failover<'a> {
    arguments: &'a Arguments,
    leaves: Leaves,
    plan: Plan,
    ledger: Arc<Ledger>,
    fleet: Fleet,
    relay: Relay,
    primary: Option<ControlPlane>,
    fallback: Option<ControlPlane>,
    address: SocketAddr,
    recorder: &'a Recorder,
}

/// Plays the story for both kinds of names.
pub(super) async fn run(arguments: &Arguments, recorder: &Recorder, say: &mut impl FnMut(&str)) -> anyhow::Result<()> {
    prepare(arguments, 1)?;
    recorder.describe(&format!(
        "{} clients (delta ADS, {} endpoints by name of {}, {} bytes each), a relay and two control planes",
        arguments.clients(),
        arguments.names.min(arguments.resources),
        arguments.resources,
        arguments.bytes
    ));
    for leaves in [Leaves::Unreachable, Leaves::Lacking] {
        let mut failover = Failover::start(arguments, leaves, recorder).await?;
        let outcome = failover.play(say).await;
        failover.finish()?;
        steps::judge(recorder, leaves.title(), outcome);
    }
    Ok(())
}

impl<'a> Failover<'a> {
    async fn start(arguments: &'a Arguments, leaves: Leaves, recorder: &'a Recorder) -> anyhow::Result<Self> {
        let authority = (leaves == Leaves::Unreachable).then_some(AUTHORITY);
        // One extra resource for each of the two outages.
        let ledger = Ledger::alone(
            Spec {
                kind: Kind::Eds,
                resources: arguments.resources,
                extras: 2,
                bytes: arguments.bytes,
                authority,
            },
            now(),
        );
        let ledger = Arc::new(ledger);
        let plan_world = World::of(Arc::clone(&ledger));
        let primary = ControlPlane::start(local(), Arc::clone(&plan_world), None)?;
        let fallback = ControlPlane::start(local(), plan_world, None)?;
        let relay = Relay::start(&Launch {
            program: arguments.relay_bin.as_deref(),
            listen: None,
            listens: false,
            source: Source::Config(config(primary.address, fallback.address)),
            quiet: true,
        })
        .await?;
        recorder.watch(&relay.process())?;
        let plan = steps::plan(arguments, relay.address, &ledger);
        let fleet = Fleet::start(&plan, arguments.threads)?;
        steps::attach(recorder, &fleet, None);
        Ok(Self {
            arguments,
            leaves,
            fleet,
            plan,
            ledger,
            relay,
            address: primary.address,
            primary: Some(primary),
            fallback: Some(fallback),
            recorder,
        })
    }

    async fn play(&mut self, say: &mut impl FnMut(&str)) -> anyhow::Result<()> {
        let title = self.leaves.title();
        let mut begin = |what: &str| steps::begin(self.recorder, say, &format!("{title}: {what}"));
        begin("everybody joins")?;
        steps::join(self.arguments, &self.fleet, self.plan.clients).await?;
        steps::quiet(self.arguments, &self.fleet, Sent::to(&self.fleet)).await?;
        begin("outage with equal content")?;
        self.outage(0).await.context("the first outage")?;
        self.revive(0, 0).await.context("the first return")?;
        begin("outage with changes")?;
        self.outage(1).await.context("the second outage")?;
        let late = self.change_below().await.context("a change at the fallback")?;
        // Content that only a control plane sends which starts from now on.
        let index = self.ledger.len() / 2;
        let wanting = self.plan.wanting(index);
        let _ = self.ledger.foretell(index, true, wanting, now());
        self.revive(1, u64::from(late) + u64::from(wanting))
            .await
            .context("the second return")?;
        begin("the fallback goes")?;
        self.change_above().await.context("a change at the primary")
    }

    /// The primary fails. No client is sent anything because of it; a client that asks for more gets exactly that.
    async fn outage(&mut self, turn: u32) -> anyhow::Result<()> {
        let (before, cpu) = (Sent::to(&self.fleet), self.relay.process().cpu("")?);
        let streams = self.fallback_streams();
        self.primary = None;
        let noticed = self.until_connected(self.address, 0.0).await?;
        self.recorder.time("the primary fails, noticed after", noticed);
        if self.leaves == Leaves::Unreachable {
            let fallback = self.fallback.as_ref().map(|fallback| fallback.address);
            let moved = self.until_connected(fallback.context("no fallback")?, 1.0).await?;
            self.recorder.time("the fallback answers after", moved);
        }
        let sent = steps::quiet(self.arguments, &self.fleet, before).await?;
        self.recorder
            .expect("messages to clients because of the failure", sent.messages, 0);
        if self.leaves == Leaves::Lacking {
            // G-06: no client lacks a resource, so the fallback is not asked.
            let opened = self.fallback_streams() - streams;
            self.recorder
                .expect("streams to the fallback because of the failure", opened, 0);
            self.ask_for_more(turn).await?;
        }
        let taken = self.relay.process().cpu("")?.saturating_sub(cpu);
        self.recorder.time("processor time of the relay", taken);
        Ok(())
    }

    async fn ask_for_more(&mut self, turn: u32) -> anyhow::Result<()> {
        let (before, index) = (Sent::to(&self.fleet), self.ledger.len() + turn);
        let asking = u64::from(self.movers());
        self.fleet.order(Order::Wish(Wish {
            every: EVERY,
            kind: self.ledger.kind(),
            index,
        }));
        let done = || before.since(&self.fleet).named >= asking;
        let what = "clients that ask for what only the fallback has";
        let served = steps::until(self.arguments, what, &self.fleet, done).await?;
        let sent = steps::quiet(self.arguments, &self.fleet, before).await?;
        self.recorder.time("one in ten asks for more, served after", served);
        self.recorder.expect("messages to them", sent.messages, asking);
        self.recorder.expect("resources in these messages", sent.named, asking);
        Ok(())
    }

    /// A change at the fallback reaches the clients that moved, and no others. Returns how many clients must wait for it.
    async fn change_below(&mut self) -> anyhow::Result<u32> {
        // The first client wants it, and is one of those that ask for more.
        let index = 0;
        let wanting = self.plan.wanting(index);
        let moved = match self.leaves {
            Leaves::Unreachable => wanting,
            Leaves::Lacking => self.plan.wanting_among(index, EVERY),
        };
        let before = Sent::to(&self.fleet);
        let _ = self.ledger.change(index, wanting, false, now());
        let done = || before.since(&self.fleet).named >= u64::from(moved);
        steps::until(self.arguments, "the clients that moved", &self.fleet, done).await?;
        let sent = steps::quiet(self.arguments, &self.fleet, before).await?;
        let what = "a change at the fallback, messages to the clients that moved";
        self.recorder.expect(what, sent.messages, u64::from(moved));
        self.recorder
            .note("clients that want this change, here or at the primary", wanting);
        Ok(wanting - moved)
    }

    /// The primary returns. Clients are sent what differs there, and the removal of what only the fallback had.
    async fn revive(&mut self, turn: u32, differing: u64) -> anyhow::Result<()> {
        let mut wanted = differing;
        if self.leaves == Leaves::Lacking {
            let (index, movers) = (self.ledger.len() + turn, self.movers());
            let _ = self.ledger.foretell(index, false, movers, now());
            wanted += u64::from(movers);
        }
        let (before, cpu) = (Sent::to(&self.fleet), self.relay.process().cpu("")?);
        self.primary = Some(ControlPlane::start(self.address, Arc::clone(&self.plan.world), None)?);
        let noticed = self.until_connected(self.address, 1.0).await?;
        self.recorder.time("the primary returns, noticed after", noticed);
        let done = || before.since(&self.fleet).named >= wanted;
        steps::until(self.arguments, "the difference", &self.fleet, done).await?;
        let sent = steps::quiet(self.arguments, &self.fleet, before).await?;
        if wanted == 0 {
            self.recorder
                .expect("messages to clients because of the return", sent.messages, 0);
        } else {
            self.recorder
                .expect("resources that changed or went", sent.named, wanted);
            self.recorder.note("messages because of the return", sent.messages);
        }
        let taken = self.relay.process().cpu("")?.saturating_sub(cpu);
        self.recorder.time("processor time of the relay", taken);
        // The fallback does not have it any more either, so no client gets it again when the fallback serves next time.
        self.ledger.announce(&[self.ledger.len() + turn]);
        Ok(())
    }

    /// All clients are back at the primary: the end of the fallback changes nothing, and a change at the primary reaches all.
    async fn change_above(&mut self) -> anyhow::Result<()> {
        if let Some(fallback) = self.fallback.take() {
            steps::rejections(&fallback, self.recorder);
        }
        let index = self.ledger.len() / 4;
        let (before, wanting) = (Sent::to(&self.fleet), self.plan.wanting(index));
        let _ = self.ledger.change(index, wanting, false, now());
        let done = || before.since(&self.fleet).named >= u64::from(wanting);
        steps::until(self.arguments, "all clients at the primary", &self.fleet, done).await?;
        let sent = steps::quiet(self.arguments, &self.fleet, before).await?;
        let what = "without the fallback, messages for a change at the primary";
        self.recorder.expect(what, sent.messages, u64::from(wanting));
        Ok(())
    }

    async fn until_connected(&self, server: SocketAddr, state: f64) -> anyhow::Result<Duration> {
        let label = format!("{server}");
        let is = |value: f64| (value - state).abs() < 0.5;
        steps::until_gauge(self.arguments, &self.relay, (CONNECTED, &label), is).await
    }

    fn fallback_streams(&self) -> u64 {
        self.fallback.as_ref().map_or(0, |fallback| fallback.counts.streams())
    }

    const fn movers(&self) -> u32 {
        self.plan.clients.div_ceil(EVERY)
    }

    fn finish(self) -> anyhow::Result<()> {
        self.recorder.end(now())?;
        self.recorder.detach(now())?;
        steps::finish(self.fleet, self.recorder)?;
        for control_plane in self.primary.iter().chain(&self.fallback) {
            steps::rejections(control_plane, self.recorder);
        }
        Ok(())
    }
}

fn config(primary: SocketAddr, fallback: SocketAddr) -> String {
    let servers = format!("[{{ server_uri: 'http://{primary}' }}, {{ server_uri: 'http://{fallback}' }}]");
    format!(
        "upstream:\n  xds_servers: {servers}\n  authorities:\n    {AUTHORITY}:\n      xds_servers: {servers}\n      \
         fallback_on_reachability_only: true\n"
    )
}
