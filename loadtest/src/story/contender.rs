// SPDX-License-Identifier: Apache-2.0
//! One server under load, with its control plane and its clients: a relay and its control plane, a control plane alone, a server
//! that runs already, or the floor. A scenario drives several of them side by side.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use tokio::time::timeout;

use super::file::Scenario;
use super::manner::Manner;
use super::{local, now, ramp};
use crate::command::arguments::Arguments;
use crate::fleet::{Fleet, Plan};
use crate::measure::process::Process;
use crate::measure::record::Distribution;
use crate::measure::tally::Tally;
use crate::origin::control_plane::ControlPlane;
use crate::origin::ledger::{Content, Spec, What};
use crate::origin::world::World;
use crate::subject::floor::Floor;
use crate::subject::network::Network;
use crate::subject::relay::Relay;
use crate::wire::kind::{Dialect, Kind};

/// The running parts. They are dropped in the order of the fields: clients, server, control plane.
pub(super) struct Contender {
    pub(super) fleet: Fleet,
    pub(super) plan: Plan,
    pub(super) server: Server,
    pub(super) origin: Origin,
    demand: BTreeMap<Kind, Vec<u32>>,
    total: Tally,
}

/// Where a contender's resources come from.
#[derive(Default)]
pub(super) struct Origin {
    pub(super) control_plane: Option<ControlPlane>,
    pub(super) address: Option<SocketAddr>,
    /// The only dialect that it knows.
    pub(super) dialect: Option<Dialect>,
    /// The second control plane.
    pub(super) fallback: Option<ControlPlane>,
    pub(super) above: Option<Above>,
    pub(super) upstream: Option<Upstream>,
    pub(super) networks: Option<Networks>,
    /// What clients will get only when a control plane comes back.
    pub(super) unseen: Vec<Arc<Content>>,
    /// How many extras are asked for.
    pub(super) wishes: u32,
}

/// What clients connect to.
pub(super) enum Server {
    Relay {
        relay: Option<Relay>,
        manner: Manner,
    },
    Floor(Floor),
    /// A server that this program did not start, with its process if that is known.
    Other(Option<Process>),
}

/// How long something took, and the processor time meanwhile.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spent {
    pub(super) taken: Duration,
    /// By the server.
    pub(super) cpu: Duration,
    /// By this program.
    pub(super) tool: Duration,
}

/// One change of some resources, and its cost.
#[derive(Debug)]
pub(super) struct Round {
    pub(super) spent: Spent,
    pub(super) deliveries: u64,
    pub(super) bytes: u64,
    pub(super) propagation: Distribution,
}

/// The networks around a relay, if a scenario makes trouble in them.
pub(super) struct Networks {
    /// Between clients and relay.
    pub(super) clients: Network,
    /// Between relay and control plane.
    pub(super) control_plane: Network,
}

/// A relay above the one under test.
pub(super) struct Above {
    pub(super) relay: Option<Relay>,
    pub(super) manner: Manner,
    pub(super) upstream: Upstream,
}

/// The control plane of a relay.
#[derive(Clone, Debug, Default)]
pub(super) struct Upstream {
    pub(super) uri: String,
    /// As text of the relay's configuration; also tokens.
    pub(super) credentials: Option<String>,
    /// The node that the relay presents, as JSON, if it is not the usual one.
    pub(super) node: Option<String>,
    /// The servers in the place of `uri`, and what else belongs to `upstream`, if there are two.
    pub(super) servers: Option<String>,
}

/// The processor times at the beginning of something.
struct Watch {
    cpu: Duration,
    tool: Duration,
    begin: Instant,
}

/// How long a round waits at its end, so that acknowledgements are read within it.
const SETTLE: Duration = Duration::from_millis(50);

impl Contender {
    pub(super) fn new(plan: Plan, server: Server, origin: Origin) -> anyhow::Result<Self> {
        Ok(Self {
            fleet: Fleet::start(&plan)?,
            plan,
            server,
            origin,
            demand: BTreeMap::new(),
            total: Tally::new()?,
        })
    }

    pub(super) fn process(&self) -> Option<Process> {
        match &self.server {
            Server::Relay { relay, .. } => relay.as_ref().map(Relay::process),
            Server::Floor(floor) => Some(floor.process()),
            Server::Other(process) => process.clone(),
        }
    }

    /// Where the relay's admin address is.
    pub(super) fn admin(&self) -> Option<SocketAddr> {
        match &self.server {
            Server::Relay { relay, .. } => relay.as_ref().map(Relay::admin),
            Server::Floor(_) | Server::Other(_) => None,
        }
    }

    pub(super) fn world(&self) -> &Arc<World> {
        &self.plan.world
    }

    /// Returns how many clients are to get a resource when it changes.
    pub(super) fn wanting(&self, kind: Kind, index: u32) -> u32 {
        let of_kind = self.demand.get(&kind);
        let wanting = usize::try_from(index)
            .ok()
            .and_then(|index| of_kind?.get(index).copied());
        wanting.unwrap_or_default()
    }

    /// Gives resources new content, which no control plane sends before it is announced or another one starts.
    pub(super) fn write(
        &self,
        kind: Kind,
        indexes: &[u32],
        what: What,
        measured: bool,
        due: Instant,
    ) -> anyhow::Result<Vec<Arc<Content>>> {
        let ledger = self.world().ledger(kind).context("the world has no such resources")?;
        let write = |index: &u32| ledger.write(*index, what, self.wanting(kind, *index), measured, due);
        Ok(indexes.iter().filter_map(write).collect())
    }

    pub(super) fn announce(&self, kind: Kind, indexes: &[u32]) -> anyhow::Result<()> {
        let ledger = self.world().ledger(kind).context("the world has no such resources")?;
        match &self.server {
            Server::Floor(floor) => floor.push(ledger, indexes)?,
            Server::Relay { .. } | Server::Other(_) => ledger.announce(indexes),
        }
        Ok(())
    }

    /// Gives resources new content and announces it.
    pub(super) fn change(
        &self,
        kind: Kind,
        indexes: &[u32],
        what: What,
        measured: bool,
        due: Instant,
    ) -> anyhow::Result<Vec<Arc<Content>>> {
        let contents = self.write(kind, indexes, what, measured, due)?;
        self.announce(kind, indexes)?;
        Ok(contents)
    }

    /// Waits until `done`, a violation, or the end of the time.
    pub(super) async fn wait(&self, limit: Duration, mut done: impl FnMut() -> bool) -> anyhow::Result<()> {
        let progress = &self.fleet.progress;
        let waiting = async {
            loop {
                let mut rings = std::pin::pin!(progress.changed.notified());
                let mut delivered = std::pin::pin!(self.plan.world.bell.delivered.notified());
                // Registered before the check, so that no ring between is lost.
                rings.as_mut().enable();
                delivered.as_mut().enable();
                if done() {
                    return Ok(());
                }
                if progress.violated() > 0 {
                    bail!("{} clients saw violations", progress.violated());
                }
                if let Some(refusal) = progress.refusal().filter(|refusal| refusal.is_final) {
                    return Err(refusal.into());
                }
                tokio::select! { () = rings => {}, () = delivered => {}, () = tokio::time::sleep(POLL) => {} }
            }
        };
        timeout(limit, waiting)
            .await
            .with_context(|| format!("not done within {limit:?}"))?
    }

    /// Waits until every client has all these contents.
    pub(super) async fn delivered(&self, limit: Duration, contents: &[Arc<Content>]) -> anyhow::Result<()> {
        let mut behind = contents.iter().peekable();
        let is_delivered = |content: &&Arc<Content>| content.awaited.load(Ordering::Acquire) == 0;
        self.wait(limit, || {
            while behind.next_if(is_delivered).is_some() {}
            behind.peek().is_none()
        })
        .await
    }

    /// Lets clients in until there are `clients`, evenly `over` a time, and then waits until the steady ones have everything.
    pub(super) async fn join(&mut self, clients: u32, over: Duration, limit: Duration) -> anyhow::Result<Spent> {
        // Clients that share a connection come together.
        let admitted = clients
            .next_multiple_of(self.plan.per_connection)
            .min(self.plan.clients);
        let mut plan = self.plan.clone();
        plan.clients = admitted;
        self.demand = demand(&plan);
        let (watch, progress) = (self.watch()?, Arc::clone(&self.fleet.progress));
        let all = self.plan.complete_of(admitted);
        progress.expect(all);
        ramp::admit(&self.fleet, admitted, over).await;
        self.wait(limit, || progress.complete() >= all).await.with_context(|| {
            format!(
                "{} of {all} clients are complete{}",
                progress.complete(),
                self.unserved()
            )
        })?;
        let taken = watch.begin.elapsed();
        self.spent(watch, taken)
    }

    /// Starts to count processor time.
    fn watch(&self) -> anyhow::Result<Watch> {
        Ok(Watch {
            cpu: self.cpu()?,
            tool: Process::own().cpu()?,
            begin: now(),
        })
    }

    fn cpu(&self) -> anyhow::Result<Duration> {
        self.process().map_or(Ok(Duration::ZERO), |process| process.cpu())
    }

    fn spent(&self, since: Watch, taken: Duration) -> anyhow::Result<Spent> {
        Ok(Spent {
            taken,
            cpu: self.cpu()?.saturating_sub(since.cpu),
            tool: Process::own().cpu()?.saturating_sub(since.tool),
        })
    }

    /// Measures one change, from when it is written until all clients have acknowledged it.
    pub(super) async fn round(
        &mut self,
        kind: Kind,
        indexes: &[u32],
        what: What,
        limit: Duration,
    ) -> anyhow::Result<Round> {
        let before = self.totals()?;
        let watch = self.watch()?;
        let contents = self.change(kind, indexes, what, true, watch.begin)?;
        self.delivered(limit, &contents).await?;
        let taken = watch.begin.elapsed();
        tokio::time::sleep(SETTLE).await;
        let spent = self.spent(watch, taken)?;
        let after = self.totals()?;
        Ok(Round {
            spent,
            deliveries: after.delivered - before.delivered,
            bytes: after.bytes - before.bytes,
            propagation: after.propagation.since(&before.propagation)?,
        })
    }

    fn totals(&self) -> anyhow::Result<Tally> {
        let mut sum = self.total.clone();
        self.fleet.feed.total(&mut sum)?;
        Ok(sum)
    }

    /// Starts the relay at the same address, if it runs after it has stopped.
    pub(super) async fn start_relay(&mut self, arguments: &Arguments) -> anyhow::Result<()> {
        let upstream = self.origin.upstream.clone();
        let Server::Relay { relay, manner } = &mut self.server else {
            bail!("there is no relay to restart");
        };
        *relay = None;
        let upstream = upstream.context("there is no control plane")?;
        *relay = Some(manner.start(arguments, &upstream).await?);
        Ok(())
    }

    /// The same for the relay above it.
    pub(super) async fn restart_above(&mut self, arguments: &Arguments) -> anyhow::Result<()> {
        let above = self.origin.above.as_mut().context("there is no relay above")?;
        above.relay = None;
        above.relay = Some(above.manner.start(arguments, &above.upstream).await?);
        Ok(())
    }

    /// Kills the relay at once, if it runs.
    pub(super) fn kill_relay(&mut self) -> anyhow::Result<()> {
        match &mut self.server {
            Server::Relay { relay, .. } => relay.take().map_or(Ok(()), Relay::kill),
            Server::Floor(_) | Server::Other(_) => bail!("there is no relay to kill"),
        }
    }

    /// Whether the server that the clients ask runs, as far as this program has a say in it.
    pub(super) fn is_served(&self, arguments: &Arguments) -> bool {
        let own = arguments.direct && self.origin.address.is_some();
        match &self.server {
            Server::Relay { relay, .. } => relay.is_some(),
            Server::Other(_) => !own || self.origin.control_plane.is_some(),
            Server::Floor(_) => true,
        }
    }

    pub(super) fn stop_control_plane(&mut self) {
        self.origin.control_plane = None;
    }

    pub(super) fn start_control_plane(&mut self) -> anyhow::Result<()> {
        let address = self.origin.address.unwrap_or_else(local);
        let world = Arc::clone(&self.plan.world);
        self.origin.control_plane = Some(ControlPlane::start(address, world, self.origin.dialect)?);
        Ok(())
    }
}

const POLL: Duration = Duration::from_millis(500);

/// Returns how many of a plan's clients want each resource.
fn demand(plan: &Plan) -> BTreeMap<Kind, Vec<u32>> {
    let kinds = plan.world.ledgers().iter().map(|ledger| ledger.kind());
    kinds.map(|kind| (kind, plan.demand(kind, 1))).collect()
}

/// Creates a world for one contender.
pub(super) fn world(scenario: &Scenario) -> Arc<World> {
    let resources = scenario.world.iter();
    let specs = resources.map(|(kind, resources)| Spec {
        kind: *kind,
        resources: resources.count,
        extras: resources.extras,
        bytes: usize::try_from(resources.bytes.0).unwrap_or(usize::MAX),
        authority: scenario.control_plane.xdstp.then_some(AUTHORITY),
    });
    World::new(&specs.collect::<Vec<_>>(), now())
}

/// The authority of names, where they have one.
pub(super) const AUTHORITY: &str = "fleet.example.com";
