//! Records a control plane: a few clients ask it for everything and for what that refers to, and what they are told is written down.
//! Owns when a recording ends, and that no secret gets into it: secrets are not asked for, and those inside of other resources are
//! replaced.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, bail, ensure};
use bytes::Bytes;
use clap::Args;
use distributary::json::Schemas;
use tokio::time::sleep;

use super::{CLIENTS_MAX, Event, Head, Sink};
use crate::fleet::client::profile::{Behaviour, Interest, Profile};
use crate::fleet::crew::Crew;
use crate::fleet::identity::{ClientIdentity, IdentityShape};
use crate::fleet::{Fleet, Plan};
use crate::measure::quantities::seconds;
use crate::measure::shard::Shard;
use crate::origin::ledger::{Ear, Heard};
use crate::origin::world::World;
use crate::wire::kind::{Dialect, Kind};
use crate::wire::place::{Place, Trust};

/// The arguments of `record`.
#[derive(Clone, Debug, Args)]
pub(crate) struct Listen {
    /// The file to write.
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Replace the file if there is one.
    #[arg(long)]
    force: bool,
    /// For how long; default: until Ctrl-C.
    #[arg(long = "for", value_name = "TIME", value_parser = seconds)]
    time: Option<Duration>,
}

/// Which control plane is heard, and by which clients.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Audience<'a> {
    pub(crate) place: &'a Place,
    pub(crate) trust: &'a Trust,
    pub(crate) identity: &'a IdentityShape,
    pub(crate) clients: Option<u32>,
    pub(crate) dialect: Dialect,
    /// How long the control plane may say nothing from the start.
    pub(crate) patience: Duration,
}

/// What waits to be written; clients wait if the disk is slower.
pub(super) const HEARD_MAX: usize = 256;
/// How often it is looked what was heard.
pub(super) const LOOK: Duration = Duration::from_millis(10);

/// What was told about each resource last, by client.
type Last = BTreeMap<(usize, Kind, String), Option<Bytes>>;

/// A recording that is being made.
struct Tape {
    sink: Sink,
    schemas: Schemas,
    begun: Instant,
    /// When the last event was, which no later one is before: clients are heard in another order than they were told.
    at_ms: u64,
    last: Last,
    redacted: u64,
    unknown: u64,
}

impl Listen {
    /// Records until the time is over or `stopped`. Returns what was recorded, in a sentence.
    pub(crate) async fn run(
        &self,
        audience: &Audience<'_>,
        stopped: impl Future<Output = ()>,
    ) -> anyhow::Result<String> {
        let place = audience.place;
        audience.trust.check(Some(place))?;
        let target = place.target(audience.trust, true).await?;
        let identity = Arc::new(audience.identity.resolve()?);
        let count = audience.clients.map_or_else(
            || identity.count().max(1),
            |clients| usize::try_from(clients).unwrap_or(usize::MAX),
        );
        ensure!(
            count <= CLIENTS_MAX,
            "a recording has at most {CLIENTS_MAX} clients, but there are {count}: use --clients, or a file with fewer nodes"
        );
        let clients = u32::try_from(count)?;
        let names = (0..clients).map(|number| identity.node(number).id).collect();
        let head = Head::new(place.uri(), unix_seconds(), names);
        let mut tape = Tape {
            sink: Sink::create(&self.output, &head, self.force)?,
            schemas: Schemas::standard(),
            begun: now(),
            at_ms: 0,
            last: Last::new(),
            redacted: 0,
            unknown: 0,
        };
        let (ear, heard) = sync_channel(HEARD_MAX);
        let shards = format!("1/{clients}")
            .parse::<Shard>()
            .map_err(anyhow::Error::msg)?
            .all();
        let mut fleets = Vec::new();
        for (client, shard) in shards.enumerate() {
            let plan = Plan {
                target: target.clone(),
                clients,
                per_connection: 1,
                world: World::listening(&Ear {
                    client,
                    heard: ear.clone(),
                }),
                crew: Crew::of(everything(audience.dialect, &identity)),
                shard,
            };
            let fleet = Fleet::start(&plan, 1)?;
            fleet.admit(clients);
            fleets.push(fleet);
        }
        let whole = tokio::select! {
            whole = tape.run(&heard, audience.patience) => whole,
            () = stopped => tape.finish(&heard),
            () = sleep(self.time.unwrap_or(Duration::MAX)) => tape.finish(&heard),
        };
        // Clients that wait for room go on.
        drop(heard);
        fleets.into_iter().try_for_each(|fleet| fleet.stop().map(drop))?;
        if whole.is_err() && tape.sink.is_empty() {
            // The next try needs the name.
            std::fs::remove_file(&self.output).with_context(|| format!("cannot delete {}", self.output.display()))?;
        }
        whole?;
        tape.close(&self.output)
    }
}

/// A client that asks for everything and for what that refers to, and comes back.
pub(super) fn everything(dialect: Dialect, identity: &Arc<ClientIdentity>) -> Profile {
    Profile {
        dialect,
        aggregated: true,
        apart: None,
        interests: vec![
            (Kind::Cds, Interest::All),
            (Kind::Eds, Interest::Follow),
            (Kind::Lds, Interest::All),
            (Kind::Rds, Interest::Follow),
        ],
        polls: None,
        identity: Arc::clone(identity),
        behaviour: Behaviour {
            returns: true,
            ..Behaviour::default()
        },
    }
}

impl Tape {
    /// Writes what is heard until there is no more room. Fails if nothing is said for `patience` from the start.
    async fn run(&mut self, heard: &Receiver<Heard>, patience: Duration) -> anyhow::Result<()> {
        loop {
            match heard.try_recv() {
                Ok(heard) => {
                    if !self.write(heard)? {
                        return Ok(());
                    }
                }
                Err(TryRecvError::Empty) if self.last.is_empty() && self.begun.elapsed() > patience => bail!(
                    "the server said nothing within {patience:?} (--deadline): is it there, and is this node known to it? See --node-id"
                ),
                Err(TryRecvError::Empty) => sleep(LOOK).await,
                Err(TryRecvError::Disconnected) => return Ok(()),
            }
        }
    }

    /// Writes what was heard already: what a client has acknowledged is not lost.
    fn finish(&mut self, heard: &Receiver<Heard>) -> anyhow::Result<()> {
        for heard in heard.try_iter().take(HEARD_MAX) {
            if !self.write(heard)? {
                break;
            }
        }
        Ok(())
    }

    /// Writes what is new. Returns whether there is room for more.
    fn write(&mut self, heard: Heard) -> anyhow::Result<bool> {
        let body = match heard.body {
            None => None,
            Some(body) => match self.schemas.redacted(heard.kind.type_url(), &body) {
                Some(redacted) => {
                    self.redacted += u64::from(is_redacted(&redacted) && !is_redacted(&body));
                    Some(redacted)
                }
                // What cannot be read might be a secret.
                None => {
                    self.unknown += 1;
                    return Ok(true);
                }
            },
        };
        let place = (heard.client, heard.kind, heard.name.clone());
        let before = self.last.get(&place);
        if before == Some(&body) || (before.is_none() && body.is_none()) {
            return Ok(true);
        }
        self.last.insert(place, body.clone());
        let at_ms = u64::try_from(heard.at.saturating_duration_since(self.begun).as_millis())?;
        self.at_ms = self.at_ms.max(at_ms);
        self.sink.write(&Event {
            at_ms: self.at_ms,
            client: heard.client,
            kind: heard.kind,
            name: heard.name,
            body,
        })
    }

    fn close(self, file: &Path) -> anyhow::Result<String> {
        let taken = self.begun.elapsed();
        let events = self.sink.close(u64::try_from(taken.as_millis())?)?;
        let mut text = format!("{}: {events} events in {:.1} s\n", file.display(), taken.as_secs_f64());
        for (count, what) in [
            (
                self.redacted,
                "resources had secrets, which are replaced by `[redacted]`",
            ),
            (self.unknown, "resources could not be read, and are left out"),
        ] {
            if count > 0 {
                text.push_str(&format!("{count} {what}\n"));
            }
        }
        Ok(text)
    }
}

/// Whether something in a message was replaced because it is secret.
pub(super) fn is_redacted(body: &[u8]) -> bool {
    const MARK: &[u8] = b"[redacted]";
    body.windows(MARK.len()).any(|part| part == MARK)
}

#[expect(clippy::disallowed_methods, reason = "events are timed from the real start")]
fn now() -> Instant {
    Instant::now()
}

#[expect(clippy::disallowed_methods, reason = "a recording says when it was taken")]
fn unix_seconds() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}
