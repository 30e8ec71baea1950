// SPDX-License-Identifier: Apache-2.0
//! `distributary compare`: whether two servers say the same to the same client. Owns the flags, how long is compared, and the exit code;
//! the module `get` walks the servers.

mod nodes;
mod pair;
mod report;

use std::io::{self, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use clap::{Args, ValueEnum};
use futures_util::future::join_all;

use super::asked::{Manner, ServerAddress, TlsFiles, runtime};
use super::asking::{now, patience, time};
use super::{Misuse, Unreached};
use crate::config::Transport;
use crate::get::{Contents, Walk, Ways, roots};
use crate::json::Schemas;
use crate::proto::envoy::config::core::v3::Node;
use crate::xds::printable;
use pair::Pair;
use report::Report;

/// Walk two servers as a client does, and say what differs field by field; exit code 1: something does, 2: one was not reached
#[derive(Debug, Args)]
pub(super) struct Compare {
    /// The control plane: host:port, http(s)://host:port or unix:/path
    #[arg(value_name = "CP", value_parser = ServerAddress::read)]
    plane: ServerAddress,
    /// The relay, or any other server
    #[arg(value_name = "RELAY", value_parser = ServerAddress::read)]
    relay: ServerAddress,
    /// The node id in the requests; repeat to compare as several nodes [default: the name of this host]
    #[arg(long, value_name = "ID")]
    node_id: Vec<String>,
    /// The node cluster in the requests
    #[arg(long, value_name = "CLUSTER", default_value = "default")]
    node_cluster: String,
    /// A bootstrap of Envoy or gRPC that has the node; repeat to compare as several nodes
    #[arg(long, value_name = "FILE", conflicts_with_all = ["node_id", "node_cluster"])]
    from: Vec<PathBuf>,
    /// The same for RELAY, in the same order, if the client is another node there
    #[arg(long, value_name = "FILE", requires = "from")]
    relay_from: Vec<PathBuf>,
    /// Begin with this listener, as gRPC does with its targets; repeat for more [default: all listeners and clusters]
    #[arg(long = "listener", value_name = "NAME")]
    listeners: Vec<String>,
    /// delta (sotw where a server has no delta), sotw, or both
    #[arg(long, value_enum, default_value_t = Dialects::Both)]
    dialect: Dialects,
    /// How long a server may be silent before what it has not sent counts as not there
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = patience)]
    timeout: Duration,
    /// How long something must differ: a relay is a moment behind
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = time)]
    settle: Duration,
    /// Go on for so long, and name what stays different
    #[arg(long = "for", value_name = "TIME", value_parser = time)]
    lasts: Option<Duration>,
    /// text, or json at the end
    #[arg(short, long, value_name = "FORM", value_enum, default_value_t = Output::Text)]
    output: Output,
    #[command(flatten)]
    manner: Manner,
    /// Like --ca, for RELAY [default: that of CP with https://]
    #[arg(long, value_name = "FILE")]
    relay_ca: Option<PathBuf>,
    /// Like --cert, for RELAY [default: that of CP with https://]
    #[arg(long, value_name = "FILE", requires = "relay_key")]
    relay_cert: Option<PathBuf>,
    /// Like --key, for RELAY
    #[arg(long, value_name = "FILE", requires = "relay_cert")]
    relay_key: Option<PathBuf>,
    /// Like --token-file, for RELAY
    #[arg(long, value_name = "FILE")]
    relay_token_file: Option<PathBuf>,
    /// A file of descriptors (FileDescriptorSet) of types that are not in the public API; repeat for more
    #[arg(long, value_name = "FILE")]
    descriptors: Vec<PathBuf>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Dialects {
    Both,
    Delta,
    Sotw,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Output {
    Text,
    Json,
}

/// How often to look.
const LOOK: Duration = Duration::from_millis(50);

impl Compare {
    pub(super) fn run(self, out: &mut impl Write, notes: &mut impl Write) -> anyhow::Result<()> {
        let compared =
            self.compared(out, notes)
                .map_err(|error| match error.is::<Misuse>() || error.is::<io::Error>() {
                    true => error,
                    // Exit code 1 says that something differs, and nothing else does.
                    false => Unreached(super::told(&error)).into(),
                })?;
        compared.map_or(Ok(()), |summary| bail!("{summary}"))
    }

    /// Returns how much differs; `None` if nothing does.
    fn compared(&self, out: &mut impl Write, notes: &mut impl Write) -> anyhow::Result<Option<String>> {
        let runtime = runtime()?;
        let (mut pairs, writers) = self.pairs(now())?;
        let mut report = Report::new([self.plane.to_string(), self.relay.to_string()]);
        runtime.block_on(async {
            let asking = join_all(writers);
            tokio::select! {
                _ = asking => Ok(()),
                compared = self.compare(&mut pairs, &mut report, out, notes) => compared,
            }
        })?;
        if self.output == Output::Json {
            writeln!(out, "{}", report.json(&pairs))?;
        }
        if let Some(words) = pairs.iter().find_map(|pair| pair.trouble(now())) {
            return Err(Unreached(words).into());
        }
        let summary = report.summary();
        if summary.is_none() && self.output == Output::Text {
            writeln!(out, "{}", report::equal(&pairs))?;
        }
        Ok(summary)
    }

    fn pairs(&self, now: Instant) -> anyhow::Result<(Vec<Pair>, Vec<impl Future<Output = ()> + use<>>)> {
        let dialects: &[(&'static str, Transport)] = match self.dialect {
            Dialects::Both => &[("delta", Transport::Delta), ("sotw", Transport::Sotw)],
            Dialects::Delta => &[("delta", Transport::Delta)],
            Dialects::Sotw => &[("sotw", Transport::Sotw)],
        };
        let files = TlsFiles::of(&self.relay_ca, &self.relay_cert, &self.relay_key);
        let second = (self.manner).of_second(&self.relay, files, self.relay_token_file.clone());
        let (mut pairs, mut writers) = (Vec::new(), Vec::new());
        for [one, other] in nodes::of(self)? {
            for (dialect, transport) in dialects {
                let label = one.id.clone();
                let mut walk = |manner: &Manner, server: &ServerAddress, node: &Node| {
                    let peer = manner.peer(server, false, *transport, node.clone())?;
                    let (walk, writer) = Walk::begin(&peer, roots(&self.listeners), self.timeout, now);
                    writers.push(writer);
                    anyhow::Ok(walk)
                };
                let walks = [
                    walk(&self.manner, &self.plane, &one)?,
                    walk(&second, &self.relay, &other)?,
                ];
                pairs.push(Pair::new(label, dialect, walks));
            }
        }
        Ok((pairs, writers))
    }

    /// Looks until the time is over, and then until each difference has lasted or is gone.
    async fn compare(
        &self,
        pairs: &mut [Pair],
        report: &mut Report,
        out: &mut impl Write,
        notes: &mut impl Write,
    ) -> anyhow::Result<()> {
        let schemas = Schemas::with_files(&self.descriptors).context("--descriptors")?;
        let (mut ways, mut contents) = (Ways::new(schemas.clone()), Contents::new(schemas));
        let mut tick = tokio::time::interval(LOOK);
        let mut over: Option<Instant> = None;
        loop {
            tick.tick().await;
            let at = now();
            for pair in &mut *pairs {
                pair.look(&mut ways, &mut contents, at)?;
                if let Some(words) = pair.new_trouble(self.settle, at) {
                    writeln!(notes, "{}; what it said last is compared", printable(&words))?;
                }
            }
            if !pairs.iter().all(Pair::has_begun) {
                continue;
            }
            let told = report.look(pairs, &contents, self.settle, at);
            if self.output == Output::Text {
                out.write_all(told.as_bytes())?;
                out.flush()?;
            }
            let over = *over.get_or_insert(at + self.lasts.unwrap_or_default());
            let settling = at < over + self.settle && pairs.iter().any(|pair| pair.is_young(self.settle, at));
            if at >= over && !settling {
                return Ok(());
            }
        }
    }
}
