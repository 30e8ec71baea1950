// SPDX-License-Identifier: Apache-2.0
//! `distributary validate --explain`: which rule decides what a client may have.

use std::io::Write;

use clap::Args;

use crate::classes::{Class, Node, Path};
use crate::config::{AdminAction, Config};
use crate::xds::{BUCKETS, Caller, Name, Question, TypeUrl, Way, bucket};

/// A client, and what it asks for.
#[derive(Debug, Args)]
pub(super) struct Explain {
    /// Say which rule decides what a client may have, or what a visitor of the admin address may do, and why
    #[arg(long, requires = "asked", requires = "file")]
    explain: bool,
    /// What the relay has checked about the client, such as spiffe://td/ns/a/sa/b or ip:10.0.0.7; repeat for more
    #[arg(long, value_name = "TEXT", requires = "explain")]
    identity: Vec<String>,
    /// The client's node id, and its cluster after a comma
    #[arg(long, value_name = "ID[,CLUSTER]", requires = "explain", group = "asked")]
    node: Option<String>,
    /// A member of the node's metadata, such as LABELS.team=blue; repeat for more
    #[arg(long, value_name = "KEY=VALUE", requires = "node", value_parser = member)]
    metadata: Vec<(Path, String)>,
    /// What somebody with this identity does at the admin address: read, change or secrets
    #[arg(long, value_name = "ACTION", requires = "explain", group = "asked", value_parser = AdminAction::parse)]
    admin: Option<AdminAction>,
    /// How it asks: sotw, delta or rest
    #[arg(long, value_name = "DIALECT", requires = "explain", default_value = "delta", value_parser = way)]
    dialect: Way,
    /// A type, such as cds, or its full name [default: only whether the stream may begin]
    #[arg(long = "type", value_name = "TYPE", requires = "explain")]
    type_url: Option<TypeUrl>,
    /// The name of a resource [default: whether it may have any]
    #[arg(long, requires = "type_url")]
    name: Option<String>,
}

fn way(text: &str) -> Result<Way, String> {
    Way::called(text).ok_or_else(|| "write sotw, delta or rest".to_owned())
}

fn member(text: &str) -> Result<(Path, String), String> {
    let (path, value) = text.split_once('=').ok_or("write KEY=VALUE")?;
    Ok((Path::read(path)?, value.to_owned()))
}

/// Returns the class of a client in words.
fn class(config: &Config, node: &Node, identity: &[&str]) -> String {
    let class = config.classes.class(node, identity);
    let rule = class.rule.as_deref().and_then(|rule| config.classes.position(rule));
    let rule = rule.map_or_else(|| "no rule of `classes`".to_owned(), |at| format!("classes[{at}]"));
    let presented = class.presented();
    let key: Vec<String> = presented
        .common
        .iter()
        .map(|(field, value)| format!("{field}={value:?}"))
        .collect();
    let with = if key.is_empty() { "" } else { " with " };
    let id = presented.over(&config.node).id;
    format!(
        "class: {rule}{with}{}; control planes see node id {id:?}",
        key.join(", ")
    )
}

/// Returns which servers are asked, if that depends on what for; `None` if all is asked of the same ones.
fn served(config: &Config, class: &Class, id: &str, what: (Option<&TypeUrl>, Option<&Name>)) -> Option<String> {
    let upstream = &config.upstream;
    let by_class = upstream.canary.is_some() || upstream.classes.iter().any(Option::is_some);
    if upstream.sources.is_empty() && upstream.authorities.is_empty() && !by_class {
        return None;
    }
    let (type_url, name) = what;
    let rule = class.rule.as_deref().and_then(|rule| config.classes.position(rule));
    let (usual, canary) = upstream.lists(rule);
    let bucket = bucket(id);
    let canary = canary.filter(|canary| bucket.is_some_and(|bucket| bucket < canary.share));
    let (top, why) = match (canary, bucket) {
        (Some(canary), Some(bucket)) => (
            &*canary.servers,
            format!(" ({canary}: its bucket is {bucket} of {BUCKETS})"),
        ),
        (Some(_) | None, _) => (usual, String::new()),
    };
    let list = |servers: &[usize]| {
        let names: Vec<String> = servers.iter().map(|at| upstream.name(*at)).collect();
        names.join(", then ")
    };
    let Some(type_url) = type_url else {
        let sources = upstream.sources.iter().map(|source| {
            let types = source.types.iter().map(|name| TypeUrl::new(name));
            let words: Vec<String> = types.map(|one| one.word().to_owned()).collect();
            format!(
                "{} of source {}: {}",
                words.join(", "),
                source.name,
                list(&source.servers)
            )
        });
        let authorities = upstream.authorities.iter();
        let authorities = authorities.map(|(name, of)| format!("names under {name}: {}", list(&of.servers)));
        let rest = format!("all else: {}{why}", list(top));
        let lines: Vec<String> = sources.chain(authorities).chain([rest]).collect();
        return Some(format!("servers: {}", lines.join("; ")));
    };
    let owners = upstream.owners();
    let owner = owners.of(type_url, name);
    let source = upstream.sources.iter().find(|source| Some(&*source.key()) == owner);
    let authority = owner.and_then(|owner| upstream.authorities.get(owner));
    Some(match (source, authority) {
        (Some(source), _) => format!("servers: {} (source {})", list(&source.servers), source.name),
        (None, Some(authority)) => format!(
            "servers: {} (authority {})",
            list(&authority.servers),
            owner.unwrap_or_default()
        ),
        (None, None) => format!("servers: {}{why}", list(top)),
    })
}

impl Explain {
    /// Prints which rule decides, if that was asked. Returns whether it was.
    pub(super) fn run(&self, config: &Config, out: &mut impl Write) -> std::io::Result<bool> {
        let identity: Vec<&str> = self.identity.iter().map(String::as_str).collect();
        if let Some(action) = self.admin {
            match config.admin_rules.decide(&identity, action) {
                Ok(Some(at)) => writeln!(
                    out,
                    "ALLOWED: admin.rules[{at}] is the first rule that matches, and allows it"
                )?,
                Ok(None) => writeln!(
                    out,
                    "ALLOWED: there are no `admin.rules`, and without rules all is allowed"
                )?,
                Err(denied) => writeln!(out, "DENIED: {denied}")?,
            }
            return Ok(true);
        }
        let Some(node) = self.node.as_deref().filter(|_| self.explain) else {
            return Ok(false);
        };
        let (id, cluster) = node.split_once(',').unwrap_or((node, ""));
        let node = Node {
            id: id.into(),
            cluster: cluster.into(),
            metadata: self
                .metadata
                .iter()
                .map(|(path, value)| (path.as_str().to_owned(), value.clone()))
                .collect(),
            ..Node::default()
        };
        let name = self.name.as_deref().zip(self.type_url.as_ref());
        let name = name.map(|(name, type_url)| Name::read(name, type_url));
        let question = Question {
            caller: Caller {
                identity: &identity,
                node: &node,
                way: self.dialect,
            },
            type_url: self.type_url.as_ref(),
            name: name.as_ref().map(Name::as_str),
        };
        write!(out, "{}", config.access.explain(&question))?;
        if !config.classes.rules().is_empty() {
            writeln!(out, "{}", class(config, &node, &identity))?;
        }
        let class = config.classes.class(&node, &identity);
        let what = (self.type_url.as_ref(), name.as_ref());
        if let Some(servers) = served(config, &class, id, what) {
            writeln!(out, "{servers}")?;
        }
        Ok(true)
    }
}
