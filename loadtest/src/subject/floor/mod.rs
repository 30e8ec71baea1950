// SPDX-License-Identifier: Apache-2.0
//! The floor: a server in a process of its own that writes prepared bytes, and reads and drops what clients send. It costs no
//! more than the sockets do, so a relay's figures are shown as multiples of it. This side prepares the bytes.

pub(crate) mod server;

use std::io::Write as _;
use std::net::SocketAddr;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context as _, bail};
use peers::request::prefix;
use tokio::net::TcpStream;

use crate::fleet::client::profile::{Profile, Wanted};
use crate::measure::process::Process;
use crate::origin::control_plane::Answers;
use crate::origin::ledger::Ledger;
use crate::origin::world::World;
use crate::subject::relay::free_address;
use crate::wire::kind::{Dialect, Kind};
use crate::wire::tls::Papers;

/// A running floor. Dropping it ends the process.
pub(crate) struct Floor {
    pub(crate) address: SocketAddr,
    child: Child,
    input: Mutex<ChildStdin>,
    dialect: Dialect,
    /// What all clients ask for.
    wanted: Vec<(Kind, Wanted)>,
    pushes: AtomicU64,
}

/// The command that sets the bytes to write after a client's request of a given number.
pub(crate) const AFTER: u8 = b'a';
/// The command that writes bytes to all clients at once.
pub(crate) const PUSH: u8 = b'p';
const FRAME_BYTES_MAX: usize = 16_384;
const POLL: Duration = Duration::from_millis(10);
const POLLS_MAX: u32 = 1000;

impl Floor {
    /// Starts the floor for clients like this one. `script` says which type to send after which request.
    pub(crate) async fn start(
        world: &std::sync::Arc<World>,
        profile: &Profile,
        script: Vec<(u32, Kind)>,
        papers: Option<&Papers>,
    ) -> anyhow::Result<Self> {
        if !profile.aggregated {
            bail!(
                "the floor serves only aggregated streams: leave out `streams` in the groups, or leave out the floor"
            );
        }
        let address = free_address()?;
        let mut command = Command::new(std::env::current_exe()?);
        command
            .arg(server::ENTRY)
            .arg(address.to_string())
            .stdin(Stdio::piped());
        if let Some(papers) = papers {
            let shows = papers.identity();
            command.arg(shows.certificate).arg(shows.key).args(papers.client_ca());
        }
        let mut child = command.spawn().context("cannot start the floor")?;
        let input = child.stdin.take().context("the floor's process has no input")?;
        let kinds = script.iter().map(|(_, kind)| *kind);
        let floor = Self {
            address,
            child,
            input: Mutex::new(input),
            dialect: profile.dialect,
            wanted: kinds
                .filter_map(|kind| Some((kind, profile.wants(0, kind, world)?)))
                .collect(),
            pushes: AtomicU64::new(0),
        };
        for (after, kind) in script {
            let ledger = world.ledger(kind).context("the world has no such resources")?;
            let all: Vec<u32> = (0..ledger.len()).filter(|index| floor.wants(kind, *index)).collect();
            let bytes = floor.response(ledger, all);
            floor.tell(AFTER, after, &bytes)?;
        }
        for _ in 0..POLLS_MAX {
            if TcpStream::connect(address).await.is_ok() {
                return Ok(floor);
            }
            tokio::time::sleep(POLL).await;
        }
        bail!("the floor does not listen on {address}")
    }

    pub(crate) fn process(&self) -> Process {
        Process::of(self.child.id())
    }

    /// Sends the current content of these resources to all clients.
    pub(crate) fn push(&self, ledger: &Ledger, indexes: &[u32]) -> anyhow::Result<()> {
        let kind = ledger.kind();
        let indexes = match self.dialect {
            Dialect::Delta => indexes.iter().copied().filter(|it| self.wants(kind, *it)).collect(),
            Dialect::Sotw => (0..ledger.len()).filter(|it| self.wants(kind, *it)).collect(),
        };
        let bytes = self.response(ledger, indexes);
        self.tell(PUSH, 0, &bytes)
    }

    fn wants(&self, kind: Kind, index: u32) -> bool {
        self.wanted.iter().any(|(it, wanted)| match wanted {
            Wanted::All => *it == kind,
            Wanted::Some(names) => *it == kind && names.binary_search(&index).is_ok(),
        })
    }

    /// Encodes one response as frames of the first stream of a connection.
    fn response(&self, ledger: &Ledger, indexes: Vec<u32>) -> Vec<u8> {
        let push = self.pushes.fetch_add(1, Ordering::Relaxed);
        let mut message = match self.dialect {
            Dialect::Delta => Answers::delta(ledger, indexes, 0).concat(),
            Dialect::Sotw => Answers::sotw(ledger, indexes, &format!("{push:032x}")).to_vec(),
        };
        // As long as the nonce of a relay.
        prost::encoding::string::encode(5, &format!("floor-{push:010}"), &mut message);
        let message = [&prefix(message.len()), message.as_slice()].concat();
        let frames = message.chunks(FRAME_BYTES_MAX).map(|piece| {
            let [_, length @ ..] = u32::try_from(piece.len()).unwrap_or_default().to_be_bytes();
            [&length[..], &[0, 0], &1_u32.to_be_bytes(), piece].concat()
        });
        frames.collect::<Vec<_>>().concat()
    }

    fn tell(&self, what: u8, after: u32, bytes: &[u8]) -> anyhow::Result<()> {
        let length = u32::try_from(bytes.len()).context("the floor's bytes are too large for one message")?;
        let head = [&[what][..], &after.to_be_bytes(), &length.to_be_bytes()].concat();
        let mut input = self.input.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        input.write_all(&head)?;
        input.write_all(bytes)?;
        input.flush().context("the floor's process does not read its input")
    }
}

impl Drop for Floor {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
