//! Whether a scenario can be played as it is written: what is well-formed, and cannot be meant. It only reads; every fault says
//! where it is and what to write instead.

use anyhow::{bail, ensure};

use super::file::{AcksShape, ClientKind, Group, Scenario};
use super::phase::{Act, Change, Expect, Part, Pattern, PhaseShape};
use crate::kind::{Dialect, Kind};

/// What the control plane keeps at most, of one type and of all types together: it is memory of this program.
const RESOURCES_MAX: u32 = 1_000_000;
const BYTES_MAX: u64 = 64 << 20;
const WORLD_BYTES_MAX: u64 = 16 << 30;
const WEIGHT_MAX: u32 = 1_000_000;

impl Scenario {
    /// Whether it can be played.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        if self.story.is_some() {
            let own = self.world.is_empty() && self.phases.is_empty() && self.clients.groups.is_empty();
            let plain = !self.floor && !self.calm && self.tls.is_none();
            ensure!(
                own && plain,
                "a `story` says itself what happens, and flags say how much of it: leave out everything else but `description`"
            );
            return Ok(());
        }
        if self.phases.is_empty() || self.world.is_empty() || self.clients.groups.is_empty() {
            bail!("a scenario needs `world`, `clients.groups` and `phases`, or a `story`");
        }
        self.check_world()?;
        self.check_clients()?;
        self.check_phases()
    }

    /// Whether everybody finds what they need, once flags have said who there is: somebody to compare with, and something to ask
    /// for, unless a stranger has what there is.
    pub(crate) fn check_cast(&self, foreign: bool) -> anyhow::Result<()> {
        for (at, group) in self.clients.groups.iter().enumerate() {
            let (asked, word) = (group.kind.asks_first(), group.kind.word());
            let words: Vec<_> = asked.iter().map(|kind| kind.word()).collect();
            ensure!(
                foreign || asked.iter().any(|kind| self.world.contains_key(kind)),
                "`clients.groups[{at}]` ({word}) asks for {}, of which the world has none",
                words.join(" and ")
            );
        }
        for phase in &self.phases {
            let (expect, name) = (&phase.expect, &phase.name);
            ensure!(
                self.floor || !expect.needs_floor(),
                "phase `{name}` expects a multiple of the floor's, and there is none: add `floor: true` or --floor"
            );
            ensure!(
                self.calm || expect.p99_to_calm.is_none(),
                "phase `{name}` expects a multiple of the calm relay's, and there is none: add `calm: true`"
            );
        }
        Ok(())
    }

    fn check_world(&self) -> anyhow::Result<()> {
        let mut all = 0_u64;
        for (kind, resources) in &self.world {
            let (count, bytes, word) = (resources.count, resources.bytes.0, kind.word());
            ensure!(
                (1..=RESOURCES_MAX).contains(&count),
                "`world` has {count} {word}: 1 to {RESOURCES_MAX} can be simulated"
            );
            ensure!(
                bytes <= BYTES_MAX,
                "`world` has {word} of {bytes} bytes each: {BYTES_MAX} (64 MiB) can be simulated at most"
            );
            all = all.saturating_add(bytes.saturating_mul(u64::from(count)));
        }
        ensure!(
            all <= WORLD_BYTES_MAX,
            "`world` has {} MiB in all: {} can be simulated at most, so use fewer or smaller resources",
            all >> 20,
            WORLD_BYTES_MAX >> 20
        );
        Ok(())
    }

    fn check_clients(&self) -> anyhow::Result<()> {
        let clients = &self.clients;
        ensure!(clients.count > 0, "`clients.count` is 0: there must be one");
        ensure!(
            clients.per_connection > 0,
            "`clients.per_connection` is 0: each client needs a connection, so use 1 or more"
        );
        for (at, group) in clients.groups.iter().enumerate() {
            if let Some(fault) = fault_of(group) {
                bail!("`clients.groups[{at}]` ({}) {fault}", group.kind.word());
            }
        }
        Ok(())
    }

    fn check_phases(&self) -> anyhow::Result<()> {
        let mut there = 0;
        for (at, phase) in self.phases.iter().enumerate() {
            self.check_names(at, phase)?;
            if let Some(fault) = self.fault_in(&phase.act, &mut there) {
                bail!("phase `{}` {fault}", phase.name);
            }
        }
        Ok(())
    }

    /// Names of phases are their own, and those that are compared to are of phases before.
    fn check_names(&self, at: usize, phase: &PhaseShape) -> anyhow::Result<()> {
        let before = || self.phases.iter().take(at).map(|phase| phase.name.as_str());
        if before().any(|name| name == phase.name) {
            bail!("there are two phases `{}`", phase.name);
        }
        let named = phase.expect.compared.iter().map(|it| &it.to);
        let grown = phase.expect.memory_grows_at_most.iter().map(|it| &it.since);
        let stalled = phase.expect.each_stalled.iter().map(|it| &it.since);
        for other in named.chain(grown).chain(stalled) {
            if !before().any(|name| name == other) {
                bail!(
                    "phase `{}` is compared to `{other}`, which is no phase before it",
                    phase.name
                );
            }
        }
        Ok(())
    }

    /// What is wrong with what happens; `there` is how many clients have been let in.
    fn fault_in(&self, act: &Act, there: &mut u32) -> Option<String> {
        let all = self.clients.count;
        let mut let_in = |clients: u32| {
            let before = std::mem::replace(there, clients);
            (clients < before)
                .then(|| format!("lets in {clients} clients where {before} are already: use as many or more"))
        };
        match act {
            Act::Join(join) => let_in(join.clients.map_or(all, |clients| clients.min(all))),
            Act::Grow(grow) if grow.from == 0 => Some("has `from: 0`: a fleet grows from 1 or more".to_owned()),
            Act::Grow(grow) if grow.knee.is_nan() || grow.knee <= 1.0 => {
                Some("has a `knee` that is no multiple: use 2 for twice as long".to_owned())
            }
            Act::Grow(grow) => {
                let fault = let_in(grow.from.min(all)).or_else(|| self.fault_of_change(&grow.change));
                *there = all;
                fault
            }
            Act::Change(change) => self.fault_of_change(change),
            Act::Remove(remove) => {
                let count = self.world.get(&remove.kind).map_or(0, |resources| resources.count);
                (remove.count == 0 || remove.count > count)
                    .then(|| format!("removes {} {} of {count}", remove.count, remove.kind.word()))
            }
            Act::Stop(Part::Relay) | Act::Start(Part::Relay) => {
                Some("stops or starts the relay: it can be restarted, with `restart: relay`".to_owned())
            }
            Act::Reconnect(reconnect) if reconnect.one_in == 0 => {
                Some("has `one_in: 0`: use 1 for everybody".to_owned())
            }
            Act::Rest(_) | Act::Idle(_) | Act::Restart(_) | Act::Reconnect(_) => None,
            Act::Stop(Part::ControlPlane) | Act::Start(Part::ControlPlane) => None,
        }
    }

    fn fault_of_change(&self, change: &Change) -> Option<String> {
        let word = change.kind.word();
        let Some(resources) = self.world.get(&change.kind) else {
            return Some(format!("changes {word}, of which the world has none"));
        };
        let count = resources.count;
        if change.rate.is_some_and(|rate| !rate.is_finite() || rate <= 0.0) {
            return Some("has no positive `rate`: use changes a second, such as 2, or leave it out".to_owned());
        }
        if change.bytes.is_some_and(|bytes| bytes.0 > BYTES_MAX) {
            return Some(format!("has more `bytes` than {BYTES_MAX} (64 MiB)"));
        }
        match change.pattern {
            Pattern::Only(index) if index >= count => {
                Some(format!("changes number {index} of {count} {word}: the first is 0"))
            }
            Pattern::Burst(0) | Pattern::Rolling(0) | Pattern::Rollback(0) => {
                Some("changes 0 at a time: use 1 or more".to_owned())
            }
            Pattern::One | Pattern::Full | Pattern::Only(_) => None,
            Pattern::Burst(_) | Pattern::Rolling(_) | Pattern::Rollback(_) => None,
        }
    }
}

/// What is wrong with a group in itself.
fn fault_of(group: &Group) -> Option<String> {
    if group.kind == ClientKind::Hosts && group.dialect == Dialect::Sotw {
        return Some("asks for virtual hosts, which there are in delta alone: leave out `dialect: sotw`".to_owned());
    }
    let fault = match group {
        Group { weight: 0, .. } => "has `weight: 0`, and so no clients: leave it out, or use 1 or more",
        Group { weight, .. } if *weight > WEIGHT_MAX => "has a `weight` above 1000000",
        Group {
            acks: AcksShape::RejectOneIn(0),
            ..
        } => "has `reject-one-in: 0`: use 1 to reject everything",
        Group { reads: Some(size), .. } if size.0 == 0 => {
            "has `reads: 0`: use `stalls: true` for clients that do not read"
        }
        Group { flaps: Some(time), .. } if time.0.is_zero() => "has `flaps: 0s`: use a time such as 4s",
        _ => return None,
    };
    Some(fault.to_owned())
}

impl Expect {
    const fn needs_floor(&self) -> bool {
        self.p99_to_floor.is_some()
            || self.cpu_to_floor.is_some()
            || self.time_to_floor.is_some()
            || self.p99_below_or_to_floor.is_some()
    }

    /// Whether it says something of the relay's process.
    pub(super) const fn is_about_process(&self) -> bool {
        self.memory_below.is_some()
            || self.peak_below.is_some()
            || self.memory_per_client_below.is_some()
            || self.memory_grows_at_most.is_some()
            || self.each_stalled.is_some()
            || self.relay_cpu_percent_below.is_some()
    }
}

impl ClientKind {
    /// What it asks for before it was told anything.
    const fn asks_first(self) -> &'static [Kind] {
        match self {
            Self::Envoy | Self::Poller => &[Kind::Cds, Kind::Lds],
            Self::Names => &[Kind::Cds, Kind::Eds, Kind::Lds],
            Self::Grpc => &[Kind::Lds],
            Self::OnDemand | Self::Clusters => &[Kind::Cds],
            Self::Hosts => &[Kind::Vhds],
            Self::Endpoints => &[Kind::Eds],
        }
    }

    /// As it is written.
    const fn word(self) -> &'static str {
        match self {
            Self::Envoy => "envoy",
            Self::Poller => "poller",
            Self::Names => "names",
            Self::Grpc => "grpc",
            Self::OnDemand => "on-demand",
            Self::Clusters => "clusters",
            Self::Hosts => "hosts",
            Self::Endpoints => "endpoints",
        }
    }
}
