//! Plays a recording: a control plane that says again what one of the recorded clients was told, at the same times or faster. Owns
//! when what is said. The protocol is that of the built-in control plane.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::Args;
use tokio::time::{sleep, sleep_until};

use super::Recording;
use crate::control_plane::ControlPlane;
use crate::kind::Dialect;
use crate::place::Place;
use crate::world::World;

/// How a recording is played.
#[derive(Clone, Debug, Args)]
pub(crate) struct Playback {
    /// Use a recorded control plane instead of the built-in one: what `distributary-load record` has written.
    #[arg(long = "play", global = true, value_name = "FILE", conflicts_with_all = ["server", "upstream"])]
    pub(crate) file: Option<PathBuf>,
    /// With a recording: how many times as fast it is played, such as 10 or 0.5.
    #[arg(long, global = true, value_name = "TIMES", default_value = "1", value_parser = pace, allow_negative_numbers = true)]
    pace: f64,
    /// With a recording: the node id of the recorded client whose resources are played; default: the first one.
    #[arg(long = "as", global = true, value_name = "NODE")]
    client: Option<String>,
}

/// A recording that is being played.
pub(crate) struct Player {
    control_plane: ControlPlane,
    world: Arc<World>,
    recording: Recording,
    client: usize,
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
        let client = match &self.client {
            None => 0,
            Some(node) => clients.iter().position(|client| client == node).with_context(|| {
                format!(
                    "--as {node}: the recording has no such client; it has {}",
                    clients.join(", ")
                )
            })?,
        };
        let world = World::learning();
        Ok(Player {
            control_plane: ControlPlane::start(address, Arc::clone(&world), only)?,
            world,
            recording,
            client,
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
        let count = events.iter().filter(|event| event.client == self.client).count();
        let client = head.clients.get(self.client).map_or("", String::as_str);
        let length = Duration::from_millis(*length_ms).as_secs_f64();
        format!(
            "{} is played at {}: {count} events of {client} in {length:.1} s, {} times as fast, from the first stream",
            head.server,
            self.address(),
            self.pace
        )
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
        let mut events = self
            .recording
            .events
            .iter()
            .filter(|event| event.client == self.client)
            .peekable();
        let mut played = 0;
        while let Some(at_ms) = events.peek().map(|event| event.at_ms) {
            let after = Duration::from_millis(at_ms).div_f64(self.pace);
            sleep_until((begin + after).into()).await;
            // What was told at one time is told together.
            let mut told = Vec::new();
            while let Some(event) = events.next_if(|event| event.at_ms == at_ms) {
                let Some(ledger) = self.world.ledger(event.kind) else {
                    continue;
                };
                played += 1;
                let index = ledger.tell(event.name.as_bytes(), event.body.clone(), now());
                told.extend(index.map(|index| (event.kind, index)));
            }
            for ledger in self.world.ledgers() {
                let of_kind = told.iter().filter(|(kind, _)| *kind == ledger.kind());
                let indexes: Vec<u32> = of_kind.map(|(_, index)| *index).collect();
                if !indexes.is_empty() {
                    ledger.announce(&indexes);
                }
            }
        }
        let length = Duration::from_millis(self.recording.length_ms).div_f64(self.pace);
        sleep_until((begin + length).into()).await;
        played
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
