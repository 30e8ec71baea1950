// SPDX-License-Identifier: Apache-2.0
//! Asks a control plane once for everything and for what that refers to, as one client, and writes it. Owns when everything is there.

use std::collections::BTreeMap;
use std::fs::{DirBuilder, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use bytes::Bytes;
use clap::Args;
use distributary::json::{Schemas, Secrets};
use serde_json::Value;
use tokio::time::sleep;

use super::bootstrap::{Bootstrap, Given};
use crate::fleet::client::profile::{Behaviour, Interest, Profile};
use crate::fleet::crew::Crew;
use crate::fleet::identity::{ClientIdentity, IdentityShape};
use crate::fleet::progress::Progress;
use crate::fleet::{Fleet, Plan};
use crate::measure::now;
use crate::measure::quantities::seconds;
use crate::origin::world::World;
use crate::wire::kind::{Dialect, Kind};
use crate::wire::place::{Place, Trust};

/// The arguments of `dump`.
#[derive(Clone, Debug, Args)]
pub(crate) struct Dump {
    /// The control plane, `host:port` or `https://host:port`.
    #[arg(long, value_name = "PLACE")]
    server: Place,
    #[command(flatten)]
    trust: Trust,
    #[command(flatten)]
    identity: IdentityShape,
    /// The form of the protocol that the client speaks: delta or sotw (state of the world).
    #[arg(long, value_enum, hide_possible_values = true, default_value_t = Dialect::Delta)]
    dialect: Dialect,
    /// How long the control plane may take.
    #[arg(long, default_value = "60s", value_name = "TIME", value_parser = seconds)]
    deadline: Duration,
    /// The folder to write: `bootstrap.json` for Envoy; `relay.yaml` and `resources` for a relay.
    #[arg(short, long, value_name = "FOLDER")]
    output: PathBuf,
    /// Replace the files if there are some.
    #[arg(long)]
    force: bool,
    /// Write private keys and other secrets too, into files that only their owner reads; without it, they are refused.
    #[arg(long)]
    with_secrets: bool,
}

/// What a client was given last.
type Last = BTreeMap<(Kind, String), Bytes>;

/// Everything is there when the client has what it asked for and nothing came for so long.
const QUIET: Duration = Duration::from_millis(500);
/// How often it is looked what came.
const LOOK: Duration = Duration::from_millis(10);

/// A relay that serves the files.
const RELAY: &str = "# Serves what a client was given: distributary serve relay.yaml
listeners:
  - address: 127.0.0.1:15010
admin:
  address: 127.0.0.1:9901
upstream:
  xds_servers:
    - server_uri: ./resources
";

impl Dump {
    /// Dumps what the client is given. Returns what was written, in sentences.
    pub(crate) async fn run(&self) -> anyhow::Result<String> {
        self.trust.check(Some(&self.server))?;
        let identity = Arc::new(self.identity.resolve()?);
        let world = World::keeping();
        let plan = Plan {
            target: self.server.target(&self.trust, true).await?,
            clients: 1,
            per_connection: 1,
            world: Arc::clone(&world),
            crew: Crew::of(everything(self.dialect, &identity)),
            above: None,
        };
        plan.check_files()?;
        let fleet = Fleet::start(&plan)?;
        fleet.admit(1);
        let whole = everything_is_there(&fleet.progress, self.deadline).await;
        fleet.stop()?;
        let whole = whole.with_context(|| self.server.uri())?;
        let last = last(&world);
        ensure!(
            whole || !last.is_empty(),
            "{}: the server gave nothing within {:?} (--deadline): is it there, and is this node known to it? See --node-id",
            self.server.uri(),
            self.deadline
        );
        let text = self.write(&identity.json(0), &last)?;
        let waits = "the client still waits for something that it asked for and was not given\n";
        Ok(text + if whole { "" } else { waits })
    }

    fn write(&self, node: &Value, last: &Last) -> anyhow::Result<String> {
        let schemas = Schemas::standard();
        let (mut given, mut left_out) = (Given::new(), Vec::new());
        for ((kind, name), body) in last {
            let shown = schemas.resource_json(kind.type_url(), body, Secrets::Show);
            let (Ok(shown), Some(redacted)) = (shown, schemas.redacted(kind.type_url(), body)) else {
                left_out.push(format!(
                    "the {} entry `{name}` is left out: it has a type that this program does not know",
                    kind.key()
                ));
                continue;
            };
            ensure!(
                self.with_secrets || !is_redacted(&redacted) || is_redacted(body),
                "the {} entry `{name}` has a secret, such as a private key; nothing was written. To dump it all the same: --with-secrets",
                kind.key()
            );
            if shown.unknown_fields > 0 {
                left_out.push(format!(
                    "the {} entry `{name}` has {} fields that this program does not know; they are left out",
                    kind.key(),
                    shown.unknown_fields
                ));
            }
            given.insert((*kind, name.clone()), serde_json::from_slice(&shown.text)?);
        }
        let bootstrap = Bootstrap::new(node, &given);
        let resources = self.output.join("resources");
        self.folder(&resources)?;
        self.file(&self.output.join("bootstrap.json"), &pretty(&bootstrap.config)?)?;
        self.file(&self.output.join("relay.yaml"), RELAY)?;
        let mut text = format!("{}:", self.output.display());
        for kind in Kind::ALL {
            let own: Vec<_> = given.iter().filter(|((of, _), _)| *of == kind).collect();
            if own.is_empty() {
                continue;
            }
            let values: Value = own.iter().map(|(_, value)| (*value).clone()).collect();
            self.file(&resources.join(format!("{}.json", kind.key())), &pretty(&values)?)?;
            text.push_str(&format!(" {} {},", own.len(), kind.word()));
        }
        let mut text = text.trim_end_matches([',', ':']).to_owned() + "\n";
        let told = left_out.iter().chain(&bootstrap.left_out);
        for sentence in told.chain(&bootstrap.refused) {
            text.push_str(&format!("{sentence}\n"));
        }
        Ok(text)
    }

    fn folder(&self, path: &Path) -> anyhow::Result<()> {
        let mut builder = DirBuilder::new();
        let mode = if self.with_secrets { 0o700 } else { 0o755 };
        let made = builder.recursive(true).mode(mode).create(path);
        made.with_context(|| format!("cannot create {}", path.display()))
    }

    fn file(&self, path: &Path, text: &str) -> anyhow::Result<()> {
        if self.force && path.exists() {
            // The new file has its own mode.
            std::fs::remove_file(path).with_context(|| format!("cannot replace {}", path.display()))?;
        }
        let mode = if self.with_secrets { 0o600 } else { 0o644 };
        let file = OpenOptions::new().write(true).create_new(true).mode(mode).open(path);
        let mut file = file.with_context(|| {
            format!(
                "cannot create {}: choose another --output, or replace what is there with --force",
                path.display()
            )
        })?;
        let written = file.write_all(text.as_bytes());
        written.with_context(|| format!("cannot write {}", path.display()))
    }
}

/// Waits until everything is there, or for as long as `patience`. Returns whether it is.
async fn everything_is_there(progress: &Progress, patience: Duration) -> anyhow::Result<bool> {
    let (begun, mut news, mut before) = (now(), now(), 0);
    loop {
        if std::mem::replace(&mut before, progress.messages()) != before {
            news = now();
        }
        if let Some(refusal) = progress.refusal() {
            return Err(refusal.into());
        }
        if let Some(breach) = progress.violations().into_iter().next() {
            bail!("the client saw a breach of the protocol: {}", breach.what);
        }
        if progress.complete() > 0 && news.elapsed() >= QUIET {
            return Ok(true);
        }
        if begun.elapsed() > patience {
            return Ok(false);
        }
        sleep(LOOK).await;
    }
}

/// Returns what the client was given last of each resource.
fn last(world: &World) -> Last {
    let ledgers = world.ledgers().iter();
    let all = ledgers.flat_map(|ledger| (0..ledger.len()).map(move |index| (ledger, index)));
    let there = all.filter_map(|(ledger, index)| {
        let (body, _) = ledger.current(index)?;
        Some(((ledger.kind(), ledger.name(index)), body?))
    });
    there.collect()
}

/// A client that asks for everything and for what that refers to, and comes back.
fn everything(dialect: Dialect, identity: &Arc<ClientIdentity>) -> Profile {
    Profile {
        dialect,
        aggregated: true,
        above: false,
        interests: Interest::ROUTING.to_vec(),
        polls: None,
        identity: Arc::clone(identity),
        behaviour: Behaviour {
            returns: true,
            ..Behaviour::default()
        },
    }
}

/// Whether something in a message was replaced because it is secret.
fn is_redacted(body: &[u8]) -> bool {
    const MARK: &[u8] = b"[redacted]";
    body.windows(MARK.len()).any(|part| part == MARK)
}

fn pretty(value: &Value) -> anyhow::Result<String> {
    Ok(serde_json::to_string_pretty(value)? + "\n")
}
