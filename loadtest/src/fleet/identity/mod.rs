// SPDX-License-Identifier: Apache-2.0
//! Who the clients say they are: a node for each, and the headers of their requests. Owns how that is written, as flags and as keys of
//! a group, and what is wrong with it. Sends nothing.

mod nodes;
#[cfg(test)]
mod tests;
mod token;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, bail, ensure};
use clap::Args;
use distributary::get;
use distributary::json::{Bounds, Schemas, Secrets, Tree, Unknown};
use distributary::proto::envoy::config::core::v3::Node;
use distributary::proto::envoy::config::core::v3::node::UserAgentVersionType;
use distributary::proto::google::protobuf::value::Kind;
use distributary::proto::google::protobuf::{Struct, Value};
use prost::Message as _;
use token::{Signer, Token};

use crate::wire::pattern::{Pattern, numbered};

/// The heading of these flags in the help.
pub(crate) const IDENTITY: &str = "Who the clients are";

/// An identity as written. The texts of help name no `{n}`: clap would take it for the end of a line. The name of a value may.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
#[command(next_help_heading = IDENTITY)]
pub(crate) struct IdentityShape {
    /// The node id of each client; the braces with the n in them stand for the client's number, counted from 0.
    #[arg(long, value_name = "ID-{n}")]
    pub(crate) node_id: Option<String>,
    /// The node cluster; may have the number in it, as --node-id.
    #[arg(long, value_name = "CLUSTER")]
    pub(crate) node_cluster: Option<String>,
    /// The node locality: region/zone/sub_zone; may have the number in it, as --node-id.
    #[arg(long, value_name = "PLACE")]
    pub(crate) locality: Option<String>,
    /// A file with the node metadata, an object in JSON or YAML; its texts may have the number in them, as --node-id.
    #[arg(long, value_name = "FILE")]
    pub(crate) node_metadata: Option<PathBuf>,
    /// A file with the nodes of a real fleet, which the clients take in turns: a list of nodes, a bootstrap, or what Envoy's
    /// `/config_dump` says. Other flags replace parts of these nodes.
    #[arg(long, value_name = "FILE")]
    pub(crate) nodes: Option<PathBuf>,
    /// The software of the clients, such as envoy/1.40.0.
    #[arg(long, value_name = "NAME/VERSION")]
    pub(crate) user_agent: Option<String>,
    /// A header of every request; repeat for more.
    #[arg(long = "header", value_name = "KEY=VALUE")]
    pub(crate) headers: Vec<String>,
    /// A file with a token that is sent with every request; only with TLS. It is read again for each connection. The path may have
    /// the number in it, as --node-id.
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<Pattern>,
    /// A PEM file with a private key that signs a token for each client, good for an hour; only with TLS.
    #[arg(long, value_name = "FILE", conflicts_with = "token_file")]
    pub(crate) token_key: Option<PathBuf>,
    /// What the tokens of --token-key claim, an object in JSON such as {"iss":"me"}; its texts may have the number in them, as
    /// --node-id. Times are added.
    #[arg(long, value_name = "JSON", requires = "token_key")]
    pub(crate) token_claims: Option<String>,
}

/// The identity of the clients of a group.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClientIdentity {
    /// The clients take them in turns. Without any, a client is called by its number.
    nodes: Vec<Node>,
    headers: Vec<(String, String)>,
    token: Option<Token>,
}

impl IdentityShape {
    /// Reads the files, and checks everything.
    pub(crate) fn resolve(&self) -> anyhow::Result<ClientIdentity> {
        let mut nodes = self.nodes.as_deref().map_or_else(|| Ok(Vec::new()), nodes::read)?;
        if nodes.is_empty() && self.node().is_some() {
            nodes.push(usual());
        }
        let faulty = |key: &'static str| move |fault: String| anyhow::anyhow!("{key}: {fault}");
        let locality = self.locality.as_deref().map(get::locality).transpose();
        let locality = locality.map_err(faulty("locality"))?;
        let metadata = self.node_metadata.as_deref().map(metadata).transpose();
        let metadata = metadata.map_err(faulty("node metadata"))?;
        let agent = self.user_agent.as_deref().map(user_agent).transpose()?;
        for node in &mut nodes {
            node.id = self.node_id.clone().unwrap_or(std::mem::take(&mut node.id));
            node.cluster = self.node_cluster.clone().unwrap_or(std::mem::take(&mut node.cluster));
            node.locality = locality.clone().or(node.locality.take());
            node.metadata = metadata.clone().or(node.metadata.take());
            if let Some((name, version)) = &agent {
                node.user_agent_name.clone_from(name);
                node.user_agent_version_type.clone_from(version);
            }
        }
        let headers = self.headers.iter().map(|text| {
            let (name, value) = get::header(text).map_err(faulty("header"))?;
            let value = value
                .to_str()
                .with_context(|| format!("header: the value of `{name}` is not ASCII"))?;
            Ok((name.as_str().to_owned(), value.to_owned()))
        });
        let identity = ClientIdentity {
            nodes,
            headers: headers.collect::<anyhow::Result<_>>()?,
            token: self.token()?,
        };
        // A file that cannot be read is told before anything starts.
        identity.headers(0)?;
        Ok(identity)
    }

    fn token(&self) -> anyhow::Result<Option<Token>> {
        match (&self.token_file, &self.token_key) {
            (Some(_), Some(_)) => bail!("a client has one token: use a token file, or a key that signs tokens"),
            (Some(file), None) => Ok(Some(Token::File(file.clone()))),
            (None, Some(key)) => {
                let claims = self.token_claims.as_deref().unwrap_or("{}");
                Ok(Some(Token::Signed(Arc::new(Signer::new(key, claims)?))))
            }
            (None, None) => Ok(None),
        }
    }

    /// Returns whether anything but the headers is said.
    fn node(&self) -> Option<()> {
        let texts = [&self.node_id, &self.node_cluster, &self.locality, &self.user_agent];
        let said = texts.into_iter().any(Option::is_some) || self.node_metadata.is_some();
        said.then_some(())
    }
}

impl ClientIdentity {
    /// Returns the node of a client.
    pub(crate) fn node(&self, number: u32) -> Node {
        let turn = usize::try_from(number).unwrap_or_default() % self.nodes.len().max(1);
        let mut node = self.nodes.get(turn).cloned().unwrap_or_else(usual);
        if node.id.is_empty() {
            // All ids have the same length, so that the requests of all clients have the same length.
            node.id = format!("load-{number:07}");
        }
        for text in [&mut node.id, &mut node.cluster] {
            *text = numbered(text, number);
        }
        if let Some(place) = &mut node.locality {
            for text in [&mut place.region, &mut place.zone, &mut place.sub_zone] {
                *text = numbered(text, number);
            }
        }
        if let Some(metadata) = &mut node.metadata {
            number_all(metadata, number);
        }
        node
    }

    /// Returns the node of a client as JSON, as polls need it.
    pub(crate) fn json(&self, number: u32) -> serde_json::Value {
        let encoded = self.node(number).encode_to_vec();
        let json = Schemas::standard().decode(nodes::NODE, &encoded, Secrets::Show);
        // Only an extension of an unknown type cannot be written; a node is complete without it.
        let json = json.ok().and_then(|json| serde_json::from_slice(&json.text).ok());
        json.unwrap_or_else(|| serde_json::json!({ "id": self.node(number).id }))
    }

    /// Returns the headers of a client's request, with its token as it is now.
    pub(crate) fn headers(&self, number: u32) -> anyhow::Result<Vec<(String, String)>> {
        let mut headers = self.headers.clone();
        if let Some(token) = &self.token {
            headers.push(("authorization".to_owned(), format!("Bearer {}", token.of(number)?)));
        }
        Ok(headers)
    }

    /// Whether the requests have a token.
    pub(crate) const fn has_token(&self) -> bool {
        self.token.is_some()
    }

    /// Returns the file with the token of a client; none if there is no token, or if it is signed here.
    pub(crate) fn token_file(&self, number: u32) -> Option<PathBuf> {
        self.token.as_ref()?.file(number)
    }

    /// Returns the same identity without its token.
    pub(crate) fn without_token(&self) -> Self {
        let token = None;
        Self { token, ..self.clone() }
    }

    /// Returns the node of the first client as a relay presents it, as JSON; none if it is the usual one.
    pub(crate) fn of_relay(&self) -> Option<String> {
        self.nodes.first()?;
        let mut json = self.json(0);
        // A relay says itself what software it is.
        json.as_object_mut()?
            .retain(|key, _| matches!(key.as_str(), "id" | "cluster" | "locality" | "metadata"));
        Some(json.to_string())
    }
}

/// The node of a client about which nothing is said; its id is its number.
fn usual() -> Node {
    Node {
        cluster: "load".to_owned(),
        // What a server does for Envoys alone must be measured as well.
        user_agent_name: "envoy".to_owned(),
        ..Node::default()
    }
}

fn metadata(file: &Path) -> Result<Struct, String> {
    get::metadata(&format!("@{}", file.display()))
}

/// Reads `envoy/1.40.0`, and returns the name and the version in the form that this software uses.
fn user_agent(text: &str) -> anyhow::Result<(String, Option<UserAgentVersionType>)> {
    let (name, version) = text.split_once('/').unwrap_or((text, ""));
    ensure!(
        !name.is_empty(),
        "user agent: write NAME/VERSION, such as envoy/1.40.0, not `{text}`"
    );
    let numbers: Vec<Option<u32>> = version.split('.').map(|number| number.parse().ok()).collect();
    let version = match (name, numbers.as_slice()) {
        (_, [None]) if version.is_empty() => None,
        ("envoy", [Some(major), Some(minor), Some(patch)]) => {
            let json = format!(r#"{{"version":{{"major_number":{major},"minor_number":{minor},"patch":{patch}}}}}"#);
            let tree = Tree::json(json.as_bytes(), Bounds::REQUEST)?;
            let build = Schemas::standard().encode("envoy.config.core.v3.BuildVersion", &tree, "", Unknown::Deny)?;
            Some(UserAgentVersionType::UserAgentBuildVersion(build.value))
        }
        ("envoy", _) => {
            bail!("user agent: the version of an Envoy has three numbers, such as envoy/1.40.0, not `{text}`")
        }
        _ => Some(UserAgentVersionType::UserAgentVersion(version.to_owned())),
    };
    Ok((name.to_owned(), version))
}

fn number_all(object: &mut Struct, number: u32) {
    object.fields.values_mut().for_each(|value| number_value(value, number));
}

fn number_value(value: &mut Value, number: u32) {
    match &mut value.kind {
        Some(Kind::StringValue(text)) => *text = numbered(text, number),
        Some(Kind::StructValue(object)) => number_all(object, number),
        Some(Kind::ListValue(list)) => list.values.iter_mut().for_each(|value| number_value(value, number)),
        Some(Kind::NullValue(_) | Kind::NumberValue(_) | Kind::BoolValue(_)) | None => {}
    }
}
