// SPDX-License-Identifier: Apache-2.0
//! `distributary survey`: which fields of its clients' nodes a control plane answers by, and the `classes` that follow.
//!
//! Owns the flags and the order of things: first whether the same question has the same answer, then the clients, then mixtures of them.

mod asker;
mod classes;
mod node;
mod search;

use std::collections::BTreeSet;
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{anyhow, bail};
use clap::Args;

use super::Misuse;
use super::asked::{Alone, ServerAddress, runtime};
use super::asking::patience;
use crate::proto::envoy::config::core::v3::Node;
use crate::xds::TypeUrl;
use asker::{Asker, QUESTIONS_MAX, Stop, Told, UNCLEAR};
use node::SurveyedClient;
use search::NodeSearch;

/// Ask a control plane as several clients and as mixtures of them; prints which fields of a node change the answer, and the
/// `classes` for that
#[derive(Debug, Args)]
pub(super) struct SurveyCommand {
    /// The control plane: host:port, http(s)://host:port or unix:/path; nobody else is asked
    #[arg(value_name = "CP", value_parser = ServerAddress::read)]
    server: ServerAddress,
    /// The bootstraps of two or more clients, the more different the better: gRPC's JSON, or Envoy's YAML or JSON
    #[arg(long, value_name = "BOOTSTRAP", required = true, num_args = 1..)]
    from: Vec<PathBuf>,
    /// Ask only as these clients, not as mixtures of them, whose ids begin with `survey-`
    #[arg(long)]
    own_ids_only: bool,
    /// Ask for all resources of this type; repeat for more [default: lds and cds, and what these name]
    #[arg(long = "type", value_name = "TYPE")]
    types: Vec<TypeUrl>,
    /// How long to wait for each answer, and again for what it names; a control plane that is silent for longer counts as one that has
    /// nothing for the node
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = patience)]
    timeout: Duration,
    #[command(flatten)]
    manner: Alone,
}

impl SurveyCommand {
    pub(super) fn run(self, out: &mut impl Write, notes: &mut impl Write) -> anyhow::Result<()> {
        if self.from.len() < 2 {
            bail!(Misuse(
                "--from: name the bootstraps of two clients or more; of one alone nothing can differ".to_owned()
            ));
        }
        if self.from.len() + 2 > QUESTIONS_MAX {
            bail!(Misuse(format!(
                "--from: these are more clients than {QUESTIONS_MAX} questions can be about"
            )));
        }
        let runtime = runtime()?;
        let clients = self.from.iter().map(|path| SurveyedClient::read(path));
        let clients = clients.collect::<anyhow::Result<Vec<_>>>()?;
        let peer = self.manner.peer(&self.server, Node::default())?;
        let mut asker = Asker::new(runtime, peer, &self.types, self.timeout, notes);
        let answers = own(&mut asker, &clients).map_err(Stop::told)?;
        let text = if self.own_ids_only {
            alone(&clients, &answers)
        } else {
            mixed(&mut asker, &clients, answers)?
        };
        let (asked, clients) = (asker.asked(), clients.len());
        let how = if self.own_ids_only {
            "alone"
        } else {
            "and as mixtures of them"
        };
        writeln!(out, "# From {asked} questions, as {clients} clients {how}.")?;
        out.write_all(text.as_bytes())?;
        Ok(())
    }
}

/// Asks as each client, and as the first one twice.
fn own<W: Write>(asker: &mut Asker<'_, W>, clients: &[SurveyedClient]) -> Result<Vec<Told>, Stop> {
    let mut answers: Vec<Told> = Vec::new();
    for client in clients {
        let answer = asker.ask(client.node()?, &client.id)?;
        if answer.is_nothing() {
            let why = asker.why();
            return Err(Stop::Failed(anyhow!("as {} of {}: {why}", client.id, client.file)));
        }
        if answers.is_empty() {
            let again = asker.ask(client.node()?, &format!("{}, once more", client.id))?;
            if again != answer {
                let differing = answer.difference(&again);
                return Err(Stop::Failed(anyhow!(
                    "{UNCLEAR}: the same question as {} was answered otherwise a second time ({differing})",
                    client.id
                )));
            }
        }
        answers.push(answer);
    }
    asker.forget_silent(&mut answers)?;
    Ok(answers)
}

/// Asks as mixtures, and returns what follows.
fn mixed<W: Write>(asker: &mut Asker<'_, W>, clients: &[SurveyedClient], answers: Vec<Told>) -> anyhow::Result<String> {
    let first = answers.first().cloned().unwrap_or_default();
    let nodes = clients.iter().map(|client| client.fields.clone());
    let nodes = nodes.zip(answers).collect();
    asker.keep(1);
    let (found, done) = NodeSearch::new(nodes, |fields: &_| asker.mixture(fields)).run();
    asker.keep(0);
    if let Some(client) = clients.first() {
        let last = asker.ask(client.node()?, &format!("{}, for the last time", client.id));
        let last = last.map_err(Stop::told)?;
        if last != first {
            let differing = first.difference(&last);
            bail!(
                "{UNCLEAR}: as {} the answer is another one than at first ({differing}); ask again when nothing changes",
                client.id
            );
        }
    }
    match done {
        Ok(()) => Ok(classes::written(&found, clients)),
        Err(Stop::Spent) => {
            let mut known: Vec<String> = found.key.iter().chain(&found.there).map(ToString::to_string).collect();
            known.extend(known.is_empty().then(|| "nothing".to_owned()));
            bail!(
                "{QUESTIONS_MAX} questions were not enough. So far it is known that the answer depends on: {}; write fewer --from",
                known.join(", ")
            );
        }
        Err(stop) => Err(stop.told()),
    }
}

/// What can be said without mixtures.
fn alone(clients: &[SurveyedClient], answers: &[Told]) -> String {
    let pairs = || clients.iter().zip(answers);
    let explains = |same: &dyn Fn(&SurveyedClient, &SurveyedClient) -> bool| {
        pairs().all(|(one, answer)| pairs().all(|(other, others)| !same(one, other) || answer == others))
    };
    if explains(&|_, _| true) {
        return "# All of them are told the same. Mixtures would tell whether others are.\nclasses: []\n".to_owned();
    }
    let names: BTreeSet<_> = clients.iter().flat_map(|client| client.fields.names()).collect();
    let names = names
        .into_iter()
        .filter(|field| explains(&|one, other| one.fields.get(field) == other.fields.get(field)));
    let mut names: Vec<String> = names.map(ToString::to_string).collect();
    names.insert(0, "id".to_owned());
    let (names, rule) = (names.join(", "), classes::each_client());
    format!(
        "# They are not told the same. Each of these fields alone would explain it, and only mixtures tell which: {names}.\n\
         # Until then each client has a view of its own.\nclasses:\n  - {rule}\n"
    )
}
