// SPDX-License-Identifier: Apache-2.0
//! Chaos: the control plane, the relay and clients are killed, and connections between them are cut, held back or made one-way,
//! while resources change, go and return. A seed decides what happens and when. In the end everything runs again, and every
//! client must hold what the control plane says.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use tokio::time::sleep_until;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::contender::Contender;
use super::now;
use super::phase::Chaos;
use super::play::Play;
use crate::fleet::Order;
use crate::subject::network::{Stopped, WIRES, Wires};
use crate::wire::kind::Kind;

/// What has happened and is still to end. Time is counted in ticks.
struct Troubles {
    dice: Dice,
    endings: BTreeMap<u64, Vec<Ending>>,
    /// What happened, the latest last.
    told: Vec<String>,
    counts: BTreeMap<&'static str, u64>,
}

/// Random numbers that depend on the seed alone.
struct Dice {
    seed: u64,
    draws: u64,
}

/// How a trouble ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    ControlPlane,
    Relay,
    Wires { side: Side, wires: Wires, cut: bool },
    Resource { kind: Kind, index: u32 },
}

/// Which network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    /// Between clients and relay.
    Clients,
    /// Between relay and control plane.
    ControlPlane,
}

const TICK: Duration = Duration::from_millis(100);
const TICKS_PER_SECOND: u64 = 10;
/// One tick in so many changes a resource; one in so many begins a trouble.
const CHANGE_ONE_IN: u64 = 2;
const TROUBLE_ONE_IN: u64 = 15;
/// How long a trouble lasts at most, in ticks.
const TROUBLE_TICKS_MAX: u64 = 80;
/// How many of the last events are told if something does not hold.
const TOLD_MAX: usize = 20;

impl Dice {
    fn draw(&mut self, below: u64) -> u64 {
        self.draws += 1;
        xxh3_64_with_seed(&self.draws.to_le_bytes(), self.seed) % below.max(1)
    }

    fn wires(&mut self) -> Wires {
        let bits = self.draw(1 << WIRES);
        Wires(u16::try_from(bits).unwrap_or(u16::MAX))
    }

    fn stopped(&mut self) -> Stopped {
        match self.draw(3) {
            0 => Stopped::ToServer,
            1 => Stopped::ToClient,
            _ => Stopped::Everything,
        }
    }
}

impl Play<'_> {
    /// Makes trouble for as long as the scenario says, then ends it, and waits until every client holds everything.
    pub(super) async fn chaos(&mut self, chaos: Chaos, limit: Duration) -> anyhow::Result<()> {
        let seed = chaos.seed.unwrap_or_else(random);
        self.recorder.note("seed", seed);
        let mut troubles = Troubles::new(seed);
        let outcome = self.make_trouble(&mut troubles, chaos, limit).await;
        for (what, count) in &troubles.counts {
            self.recorder.note(what, count);
        }
        if outcome.is_err() {
            let from = troubles.told.len().saturating_sub(TOLD_MAX);
            for event in troubles.told.get(from..).unwrap_or_default() {
                self.recorder.note("before the failure", event);
            }
        }
        outcome.with_context(|| format!("seed {seed}"))
    }

    async fn make_trouble(&mut self, troubles: &mut Troubles, chaos: Chaos, limit: Duration) -> anyhow::Result<()> {
        let begin = now();
        let ticks = u64::try_from(chaos.time.0.as_millis() / TICK.as_millis())?;
        for tick in 0..ticks {
            let due = TICK * u32::try_from(tick).context("chaos of more than ten years")?;
            sleep_until((begin + due).into()).await;
            self.sound()?;
            let due: Vec<u64> = troubles.endings.range(..=tick).map(|(at, _)| *at).collect();
            for ending in due.iter().filter_map(|at| troubles.endings.remove(at)).flatten() {
                self.end(ending).await?;
            }
            if troubles.dice.draw(CHANGE_ONE_IN) == 0 {
                troubles.change(tick, &self.cast.main)?;
            }
            if troubles.dice.draw(TROUBLE_ONE_IN) == 0 {
                self.begin(troubles, tick)?;
            }
        }
        troubles.tell(ticks, "end".to_owned());
        for ending in std::mem::take(&mut troubles.endings).into_values().flatten() {
            self.end(ending).await?;
        }
        self.recover(limit).await
    }

    /// Begins a trouble.
    fn begin(&mut self, troubles: &mut Troubles, tick: u64) -> anyhow::Result<()> {
        let main = &mut self.cast.main;
        let networks = main.origin.networks.as_ref().context(
            "chaos needs a relay and a control plane of this program: leave out --direct, --server and --upstream",
        )?;
        let dice = &mut troubles.dice;
        let (kind, until) = (dice.draw(16), tick + 1 + dice.draw(TROUBLE_TICKS_MAX));
        let (wires, stopped, cut) = (dice.wires(), dice.stopped(), dice.draw(2) == 0);
        let every = u32::try_from(1 + dice.draw(8))?;
        let (what, ending) = match kind {
            0..=2 => {
                networks.clients.cut(wires);
                ("connections of clients are cut", None)
            }
            3..=5 => {
                networks.clients.hold(wires, stopped);
                let side = Side::Clients;
                (
                    "connections of clients are held back",
                    Some(Ending::Wires { side, wires, cut }),
                )
            }
            6 | 7 => {
                networks.control_plane.cut(Wires::ALL);
                ("the relay's connection is cut", None)
            }
            8..=10 => {
                networks.control_plane.hold(Wires::ALL, stopped);
                let (side, wires) = (Side::ControlPlane, Wires::ALL);
                (
                    "the relay's connection is held back",
                    Some(Ending::Wires { side, wires, cut }),
                )
            }
            11 | 12 => {
                main.stop_control_plane();
                ("the control plane dies", Some(Ending::ControlPlane))
            }
            13 => {
                main.kill_relay()?;
                ("the relay dies", Some(Ending::Relay))
            }
            _ => {
                let pause = TICK * u32::try_from(until - tick)?;
                main.fleet.order(Order::Leave { every, pause });
                ("clients die", None)
            }
        };
        *troubles.counts.entry(what).or_default() += 1;
        troubles.tell(
            tick,
            format!("{what} ({wires:?}, {stopped:?}, one in {every}, until {until})"),
        );
        if let Some(ending) = ending {
            troubles.endings.entry(until).or_default().push(ending);
        }
        Ok(())
    }

    async fn end(&mut self, ending: Ending) -> anyhow::Result<()> {
        let main = &mut self.cast.main;
        match ending {
            Ending::ControlPlane if main.origin.control_plane.is_none() => main.start_control_plane()?,
            Ending::Relay if main.process().is_none() => {
                main.start_relay(self.arguments).await?;
                if let Some(process) = main.process() {
                    self.recorder.watch(&process)?;
                }
            }
            // Another trouble of this kind has ended in the meantime.
            Ending::ControlPlane | Ending::Relay => {}
            Ending::Wires { side, wires, cut } => {
                let networks = main.origin.networks.as_ref().context("there is no network")?;
                let network = match side {
                    Side::Clients => &networks.clients,
                    Side::ControlPlane => &networks.control_plane,
                };
                if cut {
                    network.cut(wires);
                }
                network.hold(wires, Stopped::Nothing);
            }
            Ending::Resource { kind, index } => put(main, kind, index, true)?,
        }
        Ok(())
    }

    /// Waits until all clients hold what the control plane says.
    async fn recover(&self, limit: Duration) -> anyhow::Result<()> {
        let begin = now();
        let behind = self.cast.main.catch_up(limit).await?;
        let what = "clients that do not hold what the control plane says";
        ensure!(behind == 0, "{behind} {what} {limit:?} after the end of all troubles");
        self.recorder
            .time("everybody holds everything again after", begin.elapsed());
        self.recorder.expect(what, 0, 0);
        Ok(())
    }

    fn sound(&self) -> anyhow::Result<()> {
        match self.cast.main.fleet.progress.violated() {
            0 => Ok(()),
            violated => bail!("{violated} clients saw violations"),
        }
    }
}

impl Troubles {
    fn new(seed: u64) -> Self {
        Self {
            dice: Dice { seed, draws: 0 },
            endings: BTreeMap::new(),
            told: Vec::new(),
            counts: BTreeMap::new(),
        }
    }

    fn tell(&mut self, tick: u64, what: String) {
        let second = tick / TICKS_PER_SECOND;
        self.told.push(format!("{second} s: {what}"));
    }

    /// Changes a resource, or removes it for a while.
    fn change(&mut self, tick: u64, main: &Contender) -> anyhow::Result<()> {
        let dice = &mut self.dice;
        let ledgers = main.world().ledgers();
        let chosen = ledgers.get(usize::try_from(dice.draw(u64::try_from(ledgers.len())?))?);
        let ledger = chosen.context("there are no resources")?;
        let (kind, all) = (ledger.kind(), ledger.len());
        // A control plane removes no cluster that a route refers to.
        let first = if kind == Kind::Cds { referred(main) } else { 0 };
        let (removes, random, until) = (
            dice.draw(4) == 0,
            dice.draw(u64::from(all)),
            dice.draw(TROUBLE_TICKS_MAX),
        );
        let index = u32::try_from(random)?;
        if !removes || index < first {
            return put(main, kind, index, true);
        }
        *self.counts.entry("resources go and return").or_default() += 1;
        self.endings
            .entry(tick + 1 + until)
            .or_default()
            .push(Ending::Resource { kind, index });
        put(main, kind, index, false)
    }
}

/// Gives a resource new content, or removes it.
fn put(main: &Contender, kind: Kind, index: u32, present: bool) -> anyhow::Result<()> {
    let ledger = main.world().ledger(kind).context("the world has no such resources")?;
    // Nobody waits for single contents: some clients are away.
    let _ = ledger.foretell(index, present, 0, now());
    ledger.announce(&[index]);
    Ok(())
}

/// Returns the number of the first cluster to which no route refers.
fn referred(main: &Contender) -> u32 {
    let Some(routes) = main.world().ledger(Kind::Rds) else {
        return 0;
    };
    let ends = (0..routes.len())
        .filter_map(|route| routes.refers(route))
        .map(|(_, range)| range.end);
    ends.max().unwrap_or_default()
}

/// Returns a seed for a run without one; short, so that it can be typed.
fn random() -> u64 {
    let state = std::hash::RandomState::new();
    std::hash::BuildHasher::hash_one(&state, 0) % 1_000_000
}
