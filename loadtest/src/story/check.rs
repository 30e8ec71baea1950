// SPDX-License-Identifier: Apache-2.0
//! Checks that a scenario makes sense: finds what is well-formed but cannot be played. It only reads; every error says where the
//! fault is and what to write instead.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

use distributary::xds::meant;

use super::file::{AcksShape, ClientKind, Group, Resources, Scenario, Streams};
use super::phase::{Act, Change, Expect, Part, Pattern, PhaseShape};
use super::profiles::interests;
use super::reading::Misfit;
use crate::fleet::client::profile::Interest;
use crate::measure::quantities::BYTES_MAX;
use crate::wire::kind::{Dialect, Kind};

/// How many resources the control plane may keep of one type, and how many bytes in all: they take memory of this program.
const RESOURCES_MAX: u32 = 1_000_000;
const WORLD_BYTES_MAX: u64 = 16 << 30;
const WEIGHT_MAX: u32 = 1_000_000;
/// How often a second the relay's admin address may be asked.
const RATES: RangeInclusive<f64> = 0.01..=1000.0;

impl Scenario {
    /// Returns why the scenario cannot be played.
    pub(super) fn misfits(&self) -> Vec<Misfit> {
        // Without `world`, the server has the resources: that is known once the flags are.
        if self.phases.is_empty() || self.clients.groups.is_empty() {
            let what = "a scenario needs `clients.groups` and `phases`, and `world` without --server";
            return vec![Misfit::new("", what)];
        }
        let mut found = self.misfits_of_world();
        found.extend(self.misfits_of_clients());
        found.extend(self.misfits_of_phases());
        for (kind, path) in &self.changed_at {
            if path.split('.').any(str::is_empty) {
                let what = format!(
                    "`changed_at` has an empty field for {}: write a path such as metadata.filter_metadata.load.at",
                    kind.word()
                );
                found.push(Misfit::new("changed_at", what));
            }
        }
        found
    }

    /// Returns which parts are missing after the flags were applied: a server to compare with, or resources that clients ask for.
    /// Resources are not checked if a `foreign` control plane has them.
    pub(crate) fn missing(&self, foreign: bool) -> Vec<Misfit> {
        let mut found = Vec::new();
        for (at, group) in self.clients.groups.iter().enumerate() {
            let (asked, word) = (asks_first(group, &self.world), group.kind.word());
            let words: Vec<_> = asked.iter().map(|kind| kind.word()).collect();
            if !foreign && !asked.iter().any(|kind| self.world.contains_key(kind)) {
                let path = format!("clients.groups[{at}]");
                let what = format!(
                    "`{path}` ({word}) asks for {}, but `world` has none",
                    words.join(" and ")
                );
                found.push(Misfit::new(path, what));
            }
        }
        for (at, phase) in self.phases.iter().enumerate() {
            let expect = &phase.expect;
            let faults = [
                (
                    !foreign && matches!(phase.act, Act::Exec(_)),
                    "changes a control plane that is not this program's: use `change`, or --server or --upstream",
                ),
                (
                    !self.floor && expect.needs_floor(),
                    "is compared with the floor, but there is no floor: add `floor: true`",
                ),
                (
                    !self.calm && expect.p99_to_calm.is_some(),
                    "is compared with the calm relay, but there is none: add `calm: true`",
                ),
            ];
            let faults = faults.into_iter().filter(|(is_fault, _)| *is_fault);
            found.extend(faults.map(|(_, what)| misfit(phase, at, what)));
        }
        found
    }

    fn misfits_of_world(&self) -> Vec<Misfit> {
        let (mut found, mut all) = (Vec::new(), 0_u64);
        for (kind, resources) in &self.world {
            let (count, bytes, word) = (resources.count, resources.bytes.0, kind.word());
            let path = format!("world.{}", kind.key());
            if !(1..=RESOURCES_MAX).contains(&count) {
                let what = format!("`world` has {count} {word}: use 1 to {RESOURCES_MAX}");
                found.push(Misfit::new(format!("{path}.count"), what));
            }
            if bytes > BYTES_MAX {
                let what = format!("`world` has {word} of {bytes} bytes each: use at most {BYTES_MAX} (64 MiB)");
                found.push(Misfit::new(format!("{path}.bytes"), what));
            }
            all = all.saturating_add(bytes.saturating_mul(u64::from(count)));
        }
        if all > WORLD_BYTES_MAX && found.is_empty() {
            let what = format!(
                "`world` has {} MiB in all, but at most {} are possible: use fewer or smaller resources",
                all >> 20,
                WORLD_BYTES_MAX >> 20
            );
            found.push(Misfit::new("world", what));
        }
        found
    }

    fn misfits_of_clients(&self) -> Vec<Misfit> {
        let (clients, mut found) = (&self.clients, Vec::new());
        if clients.count == 0 {
            found.push(Misfit::new("clients.count", "`clients.count` is 0: use 1 or more"));
        }
        if clients.per_connection == 0 {
            found.push(Misfit::new(
                "clients.per_connection",
                "`clients.per_connection` is 0: each client needs a connection, so use 1 or more",
            ));
        }
        for (at, group) in clients.groups.iter().enumerate() {
            if let Some(fault) = fault_of(group) {
                let path = format!("clients.groups[{at}]");
                let what = format!("`{path}` ({}) {fault}", group.kind.word());
                found.push(Misfit::new(path, what));
            }
        }
        found
    }

    fn misfits_of_phases(&self) -> Vec<Misfit> {
        let (mut found, mut there) = (Vec::new(), 0);
        for (at, phase) in self.phases.iter().enumerate() {
            let wrong = phase.ask.iter().filter(|ask| !RATES.contains(&ask.rate)).map(|ask| {
                let (least, most) = (RATES.start(), RATES.end());
                format!("asks {} times a second: use {least} to {most}", ask.rate)
            });
            let faults = self.misnamed(at, phase).into_iter().chain(wrong);
            let faults = faults.chain(self.fault_in(&phase.act, &mut there));
            found.extend(faults.map(|fault| misfit(phase, at, &fault)));
        }
        found
    }

    /// Returns what is wrong unless every phase has a name of its own and is compared only with earlier phases.
    fn misnamed(&self, at: usize, phase: &PhaseShape) -> Vec<String> {
        let before = || self.phases.iter().take(at).map(|phase| phase.name.as_str());
        let mut found = Vec::new();
        if before().any(|name| name == phase.name) {
            found.push("has the name of an earlier phase: rename one".to_owned());
        }
        let named = phase.expect.compared.iter().map(|it| &it.to);
        let grown = phase.expect.memory_grows_at_most.iter().map(|it| &it.since);
        let stalled = phase.expect.each_stalled.iter().map(|it| &it.since);
        for other in named.chain(grown).chain(stalled) {
            if !before().any(|name| name == other) {
                let meant = meant(other, before()).map(|meant| format!("; did you mean `{meant}`?"));
                found.push(format!(
                    "is compared with `{other}`, but no earlier phase has that name{}",
                    meant.unwrap_or_default()
                ));
            }
        }
        found
    }

    /// Returns what is wrong with an act; `there` is how many clients have been let in before.
    fn fault_in(&self, act: &Act, there: &mut u32) -> Option<String> {
        let all = self.clients.count;
        let mut let_in = |clients: u32| {
            let before = std::mem::replace(there, clients);
            (clients < before)
                .then(|| format!("lets in {clients} clients, but {before} are there already: use {before} or more"))
        };
        match act {
            Act::Join(join) => let_in(join.clients.map_or(all, |clients| clients.min(all))),
            Act::Change(change) => self.fault_of_change(change),
            Act::Exec(exec) => exec.fault(),
            Act::Remove(remove) => {
                let count = self.world.get(&remove.kind).map_or(0, |resources| resources.count);
                (remove.count == 0 || remove.count > count)
                    .then(|| format!("removes {} {} of {count}", remove.count, remove.kind.word()))
            }
            Act::Stop(Part::Relay | Part::RelayAbove) | Act::Start(Part::Relay | Part::RelayAbove) => {
                Some("stops or starts a relay, which is not possible: use `restart: relay`".to_owned())
            }
            Act::Restart(Part::ControlPlane | Part::Fallback)
            | Act::Kill(Part::RelayAbove | Part::ControlPlane | Part::Fallback)
            | Act::Start(Part::Fallback) => Some("does what only another part can: see the keys of `do`".to_owned()),
            Act::Want(want) if want.one_in == 0 => Some("has `one_in: 0`: use 1 for everybody".to_owned()),
            Act::Restart(part) | Act::Kill(part) | Act::Stop(part) | Act::Start(part) => self.lacks(*part),
            Act::Reconnect(reconnect) if reconnect.one_in == 0 => {
                Some("has `one_in: 0`: use 1 for everybody".to_owned())
            }
            Act::Chaos(_)
                if self
                    .clients
                    .groups
                    .iter()
                    .any(|group| !group.returns || group.flaps.is_some()) =>
            {
                Some("ends connections, so all groups need `returns: true`, and none can have `flaps`".to_owned())
            }
            Act::Rest(_) | Act::Idle(_) | Act::Want(_) | Act::Reconnect(_) | Act::Chaos(_) => None,
        }
    }

    /// Says that a part is not there.
    fn lacks(&self, part: Part) -> Option<String> {
        let (there, key) = match part {
            Part::Relay | Part::ControlPlane => return None,
            Part::RelayAbove => (self.relay.above, "relay: { above: true }"),
            Part::Fallback => (self.control_plane.fallback, "control_plane: { fallback: true }"),
        };
        (!there).then(|| format!("is about something that is not there: add `{key}`"))
    }

    fn fault_of_change(&self, change: &Change) -> Option<String> {
        let word = change.kind.word();
        let Some(resources) = self.world.get(&change.kind) else {
            return Some(format!("changes {word}, but `world` has none"));
        };
        let count = resources.count;
        if change.rate.is_some_and(|rate| !rate.is_finite() || rate <= 0.0) {
            return Some(
                "has a `rate` that is not positive: use changes a second, such as 2, or leave it out".to_owned(),
            );
        }
        if change.bytes.is_some_and(|bytes| bytes.0 > BYTES_MAX) {
            return Some(format!("has more `bytes` than {BYTES_MAX} (64 MiB)"));
        }
        match change.pattern {
            Pattern::Only(index) if index >= count => {
                Some(format!("changes number {index} of {count} {word}: numbers begin at 0"))
            }
            Pattern::Burst(0) | Pattern::Rolling(0) | Pattern::Rollback(0) => {
                Some("changes 0 at a time: use 1 or more".to_owned())
            }
            Pattern::One | Pattern::Full | Pattern::Only(_) => None,
            Pattern::Burst(_) | Pattern::Rolling(_) | Pattern::Rollback(_) => None,
        }
    }
}

/// Returns the types that a group asks for at first, before any response.
fn asks_first(group: &Group, world: &BTreeMap<Kind, Resources>) -> Vec<Kind> {
    let interests = interests(group, world, Duration::ZERO).into_iter();
    let first = interests.filter(|(_, interest)| *interest != Interest::Follow);
    first.map(|(kind, _)| kind).collect()
}

/// Returns a fault of a phase, which is the one with this number.
fn misfit(phase: &PhaseShape, at: usize, fault: &str) -> Misfit {
    Misfit::new(format!("phases[{at}]"), format!("phase `{}` {fault}", phase.name))
}

/// Returns what is wrong with a group by itself.
fn fault_of(group: &Group) -> Option<String> {
    if group.kind == ClientKind::Hosts && group.dialect == Dialect::Sotw {
        return Some("asks for virtual hosts, which exist only in delta: leave out `dialect: sotw`".to_owned());
    }
    let ztunnel = matches!(group.kind, ClientKind::Ztunnel | ClientKind::ZtunnelOnDemand);
    let fault = match group {
        Group {
            dialect: Dialect::Sotw, ..
        } if ztunnel => "is a ztunnel, whose types exist only in delta: leave out `dialect: sotw`",
        Group {
            streams: Streams::PerType,
            ..
        } if ztunnel => "is a ztunnel, whose types have no services of their own: leave out `streams: per-type`",
        Group { weight: 0, .. } => "has `weight: 0` and therefore no clients: leave it out, or use 1 or more",
        Group { weight, .. } if *weight > WEIGHT_MAX => "has a `weight` above 1000000: use a smaller one",
        Group {
            acks: AcksShape::RejectOneIn(0),
            ..
        } => "has `reject-one-in: 0`: use 1 to reject everything",
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

    /// Whether it expects something of the relay's process.
    pub(super) const fn is_about_process(&self) -> bool {
        self.memory_below.is_some()
            || self.peak_below.is_some()
            || self.memory_per_client_below.is_some()
            || self.memory_grows_at_most.is_some()
            || self.each_stalled.is_some()
            || self.relay_cpu_percent_below.is_some()
    }
}
