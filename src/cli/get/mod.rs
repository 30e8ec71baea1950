// SPDX-License-Identifier: Apache-2.0
//! `distributary get`: asks any xDS server. Owns the flags; the module `get` asks the server.

use std::io::{ErrorKind, Write};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};

use super::Misuse;
use super::asked::{Alone, ServerAddress, runtime};
use super::asking::patience;
use crate::config::host_name;
use crate::get::{Form, GetQuestion, Shown, Unanswered, locality, metadata};
use crate::json::{Schemas, Secrets};
use crate::proto::envoy::config::core::v3::{Locality, Node};
use crate::proto::google::protobuf::Struct;
use crate::xds::{Name, TypeUrl};

/// Ask an xDS server and print its answer; the exit code is 0 only if the server has everything that was asked for
#[derive(Debug, Args)]
pub(super) struct Get {
    /// lds, listeners, cds, clusters, rds, eds, sds, ... or a type by its full name
    #[arg(value_name = "TYPE")]
    type_url: TypeUrl,
    /// The resources to ask for [default: all]
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// The server: host:port, http(s)://host:port or unix:/path
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:15010", value_parser = ServerAddress::read)]
    server: ServerAddress,
    /// Read a relay's snapshot instead of asking a server
    #[arg(long, value_name = "FILE", conflicts_with = "watch")]
    snapshot: Option<PathBuf>,
    /// yaml, json, name, or wide: a table, with the versions, the nonce and the control plane's name for itself
    #[arg(short, long, value_name = "FORM", default_value = "yaml", value_parser = forms())]
    output: Form,
    /// Print changes as they come, until interrupted
    #[arg(long)]
    watch: bool,
    /// Show secrets instead of redacting them
    #[arg(long)]
    show_secrets: bool,
    /// The node id in the request [default: the name of this host]
    #[arg(long, value_name = "ID")]
    node_id: Option<String>,
    /// The node cluster in the request
    #[arg(long, value_name = "CLUSTER", default_value = "default")]
    node_cluster: String,
    /// The node metadata in the request: an object in JSON or YAML, or @FILE
    #[arg(long, value_name = "TEXT", value_parser = metadata)]
    node_metadata: Option<Struct>,
    /// The node locality in the request: region/zone/sub_zone
    #[arg(long, value_name = "PLACE", value_parser = locality)]
    locality: Option<Locality>,
    /// How long to wait for the answer
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = patience)]
    timeout: Duration,
    #[command(flatten)]
    manner: Alone,
    /// A file of descriptors (FileDescriptorSet) of types that are not in the public API; repeat for more
    #[arg(long, value_name = "FILE")]
    descriptors: Vec<PathBuf>,
}

fn forms() -> impl TypedValueParser<Value = Form> {
    PossibleValuesParser::new(Form::ALL.map(Form::word)).try_map(|word| Form::called(&word).ok_or("it is none"))
}

impl Get {
    pub(super) fn run(self, out: &mut impl Write, notes: &mut impl Write) -> anyhow::Result<()> {
        let runtime = runtime()?;
        let shown = Shown {
            form: self.output,
            schemas: Schemas::with_files(&self.descriptors).context("--descriptors")?,
            secrets: match self.show_secrets {
                true => Secrets::Show,
                false => Secrets::Redact,
            },
        };
        let (watch, snapshot) = (self.watch, self.snapshot.clone());
        let question = self.question()?;
        let answer = runtime.block_on(async {
            if let Some(file) = &snapshot {
                question.recall(file, &shown, out)
            } else if watch {
                question.watch(&shown, out, notes).await
            } else {
                question.ask(&shown, out).await
            }
        });
        match answer {
            // The reader of the output has closed the pipe, for example `head`.
            Err(Unanswered::Print(error)) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
            answer => Ok(answer?),
        }
    }

    fn question(self) -> Result<GetQuestion, Misuse> {
        let node = Node {
            id: self.node_id.unwrap_or_else(host_name),
            cluster: self.node_cluster,
            metadata: self.node_metadata,
            locality: self.locality,
            ..Node::default()
        };
        // A star among the names means all resources.
        let all = self.names.iter().any(|name| name == Name::WILDCARD);
        let names = self.names.iter().filter(|_| !all);
        Ok(GetQuestion {
            peer: self.manner.peer(&self.server, node)?,
            names: names.map(|name| Name::read(name, &self.type_url)).collect(),
            type_url: self.type_url,
            patience: self.timeout,
        })
    }
}
