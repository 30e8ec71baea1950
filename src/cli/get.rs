//! `distributary get`: asks any xDS server. Owns the flags; the module `get` asks the server.

use std::io::{ErrorKind, Write};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Error, bail};
use clap::{Args, ValueEnum};
use http::uri::Authority;

use crate::config::{Credentials, Endpoint, Grpc, Identity, LogFilter, Tls, Transport, host_name};
use crate::get::{Form, Question, Shown, Unanswered};
use crate::json::{Schemas, Secrets};
use crate::proto::envoy::config::core::v3::Node;
use crate::telemetry::{Format, Log};
use crate::xds::{Name, TypeUrl};

/// Ask an xDS server and print its answer; the exit code is 0 only if the server has everything that was asked for
#[derive(Debug, Args)]
pub(super) struct Get {
    /// lds, listeners, cds, clusters, rds, eds, sds, ... or a type by its full name
    #[arg(value_name = "TYPE", value_parser = type_url)]
    type_url: TypeUrl,
    /// The resources to ask for [default: all]
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// The server: host:port, http(s)://host:port or unix:/path
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:15010")]
    server: String,
    /// Read a relay's snapshot instead of asking a server
    #[arg(long, value_name = "FILE", conflicts_with = "watch")]
    snapshot: Option<PathBuf>,
    /// yaml, json, name, or wide: a table
    #[arg(short, long, value_name = "FORM", value_enum, default_value_t = Output::Yaml)]
    output: Output,
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
    /// delta (with a second attempt in sotw if the server does not support delta), or sotw
    #[arg(long, value_enum, default_value_t = Dialect::Delta)]
    dialect: Dialect,
    /// How long to wait for the answer, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0, value_parser = seconds)]
    timeout: f64,
    /// The name of the server in the request and for TLS [default: as in its address]
    #[arg(long, value_name = "NAME")]
    authority: Option<Authority>,
    /// Use TLS, as https:// does
    #[arg(long)]
    tls: bool,
    /// PEM file of the authorities to trust [default: the system's]; means --tls
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// PEM file of the client certificate; means --tls
    #[arg(long, value_name = "FILE", requires = "key")]
    cert: Option<PathBuf>,
    /// PEM file of its key
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,
    /// A file of descriptors (FileDescriptorSet) of types that are not in the public API; repeat for more
    #[arg(long, value_name = "FILE")]
    descriptors: Vec<PathBuf>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Output {
    Name,
    Yaml,
    Json,
    Wide,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Dialect {
    Sotw,
    Delta,
}

/// Other names of types, and their short names.
#[rustfmt::skip]
const PLURALS: [(&str, &str); 11] = [
    ("listeners", "lds"), ("clusters", "cds"), ("routes", "rds"), ("endpoints", "eds"), ("secrets", "sds"),
    ("runtimes", "rtds"), ("extensions", "ecds"), ("scoped-routes", "srds"), ("virtual-hosts", "vhds"),
    ("locality-endpoints", "leds"), ("rate-limits", "rlsds"),
];

impl Get {
    pub(super) fn run(self, out: &mut impl Write, notes: &mut impl Write) -> anyhow::Result<()> {
        // The error at the end is for the user. The log is off unless RUST_LOG asks for it.
        let level = std::env::var("RUST_LOG").ok().filter(|level| !level.is_empty());
        let filter = LogFilter::parse(level.as_deref().unwrap_or("off")).map_err(Error::msg)?;
        drop(Log::start(filter.as_str(), Format::Text)?);
        let shown = Shown {
            form: self.output.form(),
            schemas: Schemas::with_files(&self.descriptors).context("--descriptors")?,
            secrets: if self.show_secrets {
                Secrets::Show
            } else {
                Secrets::Redact
            },
        };
        let (watch, snapshot) = (self.watch, self.snapshot.clone());
        let question = self.question()?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .context("cannot start")?;
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

    fn question(self) -> anyhow::Result<Question> {
        let (endpoint, scheme) = Endpoint::parse(&self.server).map_err(Error::msg).context("--server")?;
        let tls = self.tls || self.ca.is_some() || self.cert.is_some();
        if tls && scheme == Some(false) {
            bail!(
                "--server: `{}` excludes TLS, but another flag asks for it; write https:// or remove --tls, --ca and --cert",
                self.server
            );
        }
        let identity = self
            .cert
            .zip(self.key)
            .map(|(certificate_file, private_key_file)| Identity {
                certificate_file,
                private_key_file,
            });
        let credentials = if tls || scheme == Some(true) {
            Credentials::Tls(Tls {
                ca_certificate_file: self.ca,
                server_name: None,
                spiffe_id: None,
                identity,
            })
        } else {
            Credentials::Insecure
        };
        // A star among the names means all resources.
        let all = self.names.iter().any(|name| name == Name::WILDCARD);
        let names = self.names.iter().filter(|_| !all);
        Ok(Question {
            grpc: Grpc {
                endpoint,
                credentials,
                token: None,
                transport: match self.dialect {
                    Dialect::Delta => Transport::Delta,
                    Dialect::Sotw => Transport::Sotw,
                },
            },
            authority: self.authority,
            node: Node {
                id: self.node_id.unwrap_or_else(host_name),
                cluster: self.node_cluster,
                ..Node::default()
            },
            names: names.map(|name| Name::read(name, &self.type_url)).collect(),
            type_url: self.type_url,
            server: self.server,
            patience: Duration::from_secs_f64(self.timeout),
        })
    }
}

impl Output {
    const fn form(self) -> Form {
        match self {
            Self::Name => Form::Name,
            Self::Yaml => Form::Yaml,
            Self::Json => Form::Json,
            Self::Wide => Form::Wide,
        }
    }
}

pub(super) fn type_url(text: &str) -> Result<TypeUrl, String> {
    let plural = PLURALS
        .iter()
        .find(|(plural, _)| *plural == text || plural.strip_suffix('s') == Some(text));
    let short = plural.map_or(text, |(_, short)| short);
    match TypeUrl::called(short) {
        Some(known) => Ok(known),
        None if text.contains('.') => Ok(TypeUrl::new(text)),
        None => Err(
            "not a type; write lds, rds, srds, vhds, cds, eds, leds, sds, rtds, ecds, rlsds, or a full name such as \
             envoy.config.cluster.v3.Cluster"
                .to_owned(),
        ),
    }
}

fn seconds(text: &str) -> Result<f64, String> {
    let number: f64 = text
        .parse()
        .map_err(|_| "not a number of seconds; write 10 or 0.5".to_owned())?;
    if !(0.001..=86_400.0).contains(&number) {
        return Err("the time must be between 0.001 and 86400 seconds".to_owned());
    }
    Ok(number)
}
