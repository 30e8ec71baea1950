//! Plays a recording: a control plane that says again what the recorded clients were told, to each node what the client with its id
//! was told, at the same times or faster. Owns when what is said. The protocol is that of the built-in control plane.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::Args;
use tokio::time::{sleep, sleep_until};

use super::{Event, Recording};
use crate::origin::control_plane::ControlPlane;
use crate::origin::ledger::Ledger;
use crate::origin::world::World;
use crate::wire::kind::{Dialect, Kind};
use crate::wire::place::Place;

/// The heading of these flags in the help.
pub(crate) const RECORDING: &str = "Recordings";

/// How a recording is played.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = RECORDING)]
pub(crate) struct Playback {
    /// Use a recorded control plane instead of the built-in one: what `distributary-load record` has written.
    #[arg(long = "play", global = true, value_name = "FILE", conflicts_with_all = ["server", "upstream"])]
    pub(crate) file: Option<PathBuf>,
    /// With a recording: how many times as fast it is played, such as 10 or 0.5.
    #[arg(long, global = true, value_name = "TIMES", default_value = "1", value_parser = pace, allow_negative_numbers = true)]
    pace: f64,
    /// With a recording: the node id of the recorded client whose resources are played to everybody; default: each client gets
    /// those of the recorded client with its node id, and others get those of the first one.
    #[arg(long = "as", global = true, value_name = "NODE")]
    client: Option<String>,
}

/// A recording that is being played.
pub(crate) struct Player {
    control_plane: ControlPlane,
    /// What there is for the recorded clients that are played, by number.
    worlds: BTreeMap<usize, Arc<World>>,
    recording: Recording,
    pace: f64,
}

/// How often it is looked whether somebody has come.
const LOOK: Duration = Duration::from_millis(5);

impl Playback {
    /// Reads the recording, and serves it at `address` from when the player runs.
    pub(crate) fn start(
        &self,
        recording: Recording,
        address: SocketAddr,
        only: Option<Dialect>,
    ) -> anyhow::Result<Player> {
        let clients = &recording.head.clients;
        let played = match &self.client {
            None => 0..clients.len(),
            Some(node) => {
                let client = clients.iter().position(|client| client == node);
                let client = client.with_context(|| {
                    let all = clients.join(", ");
                    format!("--as {node}: the recording has no such client; it has {all}")
                })?;
                client..client + 1
            }
        };
        let worlds: BTreeMap<_, _> = played.map(|client| (client, World::learning())).collect();
        let by_node = worlds
            .iter()
            .filter_map(|(client, world)| Some((clients.get(*client)?.clone(), Arc::clone(world))));
        Ok(Player {
            control_plane: ControlPlane::start_by_node(address, by_node.collect(), only)?,
            worlds,
            recording,
            pace: self.pace,
        })
    }
}

impl Player {
    /// Describes what is played.
    pub(crate) fn describe(&self) -> String {
        let Recording {
            head,
            events,
            length_ms,
        } = &self.recording;
        let count = events
            .iter()
            .filter(|event| self.worlds.contains_key(&event.client))
            .count();
        let nodes = self.worlds.keys().filter_map(|client| head.clients.get(*client));
        let nodes: Vec<_> = nodes.map(String::as_str).collect();
        let length = Duration::from_millis(*length_ms).as_secs_f64();
        let mut text = format!(
            "{} is played at {}: {count} events of {} in {length:.1} s, {} times as fast, from the first stream",
            head.server,
            self.address(),
            nodes.join(", "),
            self.pace
        );
        if let [first, _, ..] = nodes.as_slice() {
            text.push_str(&format!("; to each node its own, to others those of {first}"));
        }
        text
    }

    /// Returns where it is played, as a user would write it.
    pub(crate) fn place(&self) -> anyhow::Result<Place> {
        self.address().to_string().parse().map_err(anyhow::Error::msg)
    }

    pub(crate) const fn address(&self) -> SocketAddr {
        self.control_plane.address
    }

    /// Waits for the first stream, and plays the recording to its end. Returns how many events were played.
    pub(crate) async fn run(&self) -> usize {
        while self.control_plane.counts.streams() == 0 {
            sleep(LOOK).await;
        }
        let begin = now();
        let of_played = |event: &&Event| self.worlds.contains_key(&event.client);
        let mut events = self.recording.events.iter().filter(of_played).peekable();
        let mut played = 0;
        while let Some(at_ms) = events.peek().map(|event| event.at_ms) {
            let after = Duration::from_millis(at_ms).div_f64(self.pace);
            sleep_until((begin + after).into()).await;
            // What was told at one time is told together.
            let mut told = BTreeMap::<_, Vec<u32>>::new();
            while let Some(event) = events.next_if(|event| event.at_ms == at_ms) {
                played += 1;
                let index = self.ledger(event.client, event.kind).and_then(|ledger| {
                    let body = event.body.clone();
                    ledger.tell(event.name.as_bytes(), body, now())
                });
                told.entry((event.client, event.kind)).or_default().extend(index);
            }
            for ((client, kind), indexes) in told {
                if let Some(ledger) = self.ledger(client, kind) {
                    ledger.announce(&indexes);
                }
            }
        }
        let length = Duration::from_millis(self.recording.length_ms).div_f64(self.pace);
        sleep_until((begin + length).into()).await;
        played
    }

    fn ledger(&self, client: usize, kind: Kind) -> Option<&Arc<Ledger>> {
        self.worlds.get(&client)?.ledger(kind)
    }
}

fn pace(text: &str) -> Result<f64, String> {
    let pace = text.trim_end_matches('x').parse().ok();
    let pace = pace.filter(|pace: &f64| (0.001..=1e6).contains(pace));
    pace.ok_or_else(|| "expected how many times as fast, from 0.001 to 1000000, such as 10 or 0.5".to_owned())
}

#[expect(clippy::disallowed_methods, reason = "a recording is played in real time")]
fn now() -> Instant {
    Instant::now()
}
