//! What the admin address of a relay answers, as far as it is shown.
//!
//! Owns which paths are asked for what. Compares nothing.

use std::collections::BTreeMap;

use anyhow::bail;
use serde::Deserialize;

use crate::answers::{Clusters, Views};
use crate::cli::asking::{Answer, Bounds, Relay, encoded};

/// `/resources`, by type.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Resources {
    pub(super) resources: BTreeMap<String, Vec<Resource>>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Resource {
    pub(super) name: String,
    pub(super) class: String,
    /// Whether the wildcard covers it.
    pub(super) wildcard: bool,
    pub(super) state: String,
    pub(super) digest: Option<String>,
    pub(super) bytes: Option<u64>,
    pub(super) received: Option<String>,
    pub(super) error: Option<String>,
}

/// `/nacks`
#[derive(Debug, Deserialize)]
pub(super) struct Nacks {
    pub(super) rejections: Vec<Rejection>,
    pub(super) left_out: u64,
}

#[derive(Debug, Deserialize)]
pub(super) struct Rejection {
    #[serde(rename = "type")]
    pub(super) type_url: String,
    pub(super) name: String,
    pub(super) version: Option<String>,
    pub(super) rejection: String,
    pub(super) clients: u64,
    pub(super) some: Vec<Named>,
    pub(super) software: BTreeMap<String, u64>,
    /// When the control plane was told; an older relay does not say.
    pub(super) reported: Option<String>,
    /// For which software it is condemned; an older relay does not say.
    #[serde(default)]
    pub(super) condemned: Vec<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Named {
    pub(super) node: String,
}

/// `/clients`
#[derive(Debug, Deserialize)]
pub(super) struct Clients {
    pub(super) clients: Vec<Client>,
    pub(super) unanswered: u64,
}

#[derive(Debug, Deserialize)]
pub(super) struct Client {
    pub(super) stream: String,
    pub(super) node: Node,
    pub(super) identity: String,
    pub(super) class: String,
    pub(super) address: String,
    pub(super) dialect: String,
    pub(super) since: String,
    /// An older relay does not say it.
    #[serde(default)]
    pub(super) state: String,
    pub(super) types: BTreeMap<String, Subscription>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Node {
    pub(super) id: String,
    pub(super) cluster: String,
    pub(super) user_agent_name: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct Subscription {
    pub(super) status: String,
    /// What it has in the place of something that is condemned.
    #[serde(default)]
    pub(super) older: Vec<Older>,
    /// The control plane from which it is read; an older relay does not say it.
    #[serde(default)]
    pub(super) server: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Older {
    pub(super) name: String,
    pub(super) why: String,
}

/// Whether a relay can serve clients, and how many it has.
#[derive(Debug)]
pub(super) struct Health {
    pub(super) ready: bool,
    /// `READY`, or another word and the reason.
    pub(super) state: String,
    pub(super) version: String,
    pub(super) connections: u64,
    pub(super) streams: u64,
}

impl Health {
    pub(super) fn of(relay: Relay<'_>) -> anyhow::Result<Self> {
        let (ready, state) = match relay.ask("GET", "/ready", Bounds::LINE)? {
            Answer::Body(body) => (true, body.trim_end().to_owned()),
            Answer::Refused(503, said) => (false, said),
            Answer::Refused(status, said) => bail!("{relay} answers {status}: {said}"),
        };
        let metrics = relay.text("/metrics")?;
        Ok(Self {
            ready,
            state,
            version: label(&metrics, "distributary_build_info", "version").unwrap_or_default(),
            connections: sum(&metrics, "distributary_connections"),
            streams: sum(&metrics, "distributary_streams"),
        })
    }
}

pub(super) fn clusters(relay: Relay<'_>) -> anyhow::Result<Clusters> {
    relay.json("/clusters?format=json")
}

pub(super) fn views(relay: Relay<'_>) -> anyhow::Result<Views> {
    relay.json("/views")
}

pub(super) fn nacks(relay: Relay<'_>) -> anyhow::Result<Nacks> {
    relay.json("/nacks")
}

/// `query` is added to the query, as it is.
pub(super) fn clients(relay: Relay<'_>, query: &str) -> anyhow::Result<Clients> {
    relay.json(&format!("/clients?format=json{query}"))
}

/// Returns what a relay has of these types.
pub(super) fn resources<'a>(relay: Relay<'_>, types: impl Iterator<Item = &'a String>) -> anyhow::Result<Resources> {
    let mut all = Resources {
        resources: BTreeMap::new(),
    };
    for type_url in types {
        let mut of_type: Resources = relay.json(&format!("/resources?type={}", encoded(type_url)))?;
        all.resources.append(&mut of_type.resources);
    }
    Ok(all)
}

/// The values of a metric, as Prometheus reads them.
fn samples<'a>(metrics: &'a str, name: &'a str) -> impl Iterator<Item = &'a str> {
    let of = metrics.lines().filter_map(move |line| line.strip_prefix(name));
    of.filter(|rest| rest.starts_with(['{', ' ']))
}

fn sum(metrics: &str, name: &str) -> u64 {
    let values = samples(metrics, name).filter_map(|sample| sample.rsplit(' ').next()?.parse::<u64>().ok());
    values.sum()
}

fn label(metrics: &str, name: &str, label: &str) -> Option<String> {
    let (_, rest) = samples(metrics, name).next()?.split_once(&format!("{label}=\""))?;
    rest.split('"').next().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_are_read() {
        let metrics = "# HELP a_b x\na_b{version=\"1.2\",commit=\"\"} 1\na 3\na{b=\"c d\"} 4\na_total 9\n";
        assert_eq!((sum(metrics, "a"), sum(metrics, "b")), (7, 0));
        assert_eq!(label(metrics, "a_b", "version").as_deref(), Some("1.2"));
        assert_eq!(label(metrics, "a", "version"), None);
    }
}
