// SPDX-License-Identifier: Apache-2.0
//! A scenario as written in YAML: the resources, the clients, what happens, and what must hold. Owns the grammar: unknown keys
//! are errors. `reading` finds all of them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use distributary::xds::meant;
use serde::{Deserialize, Serialize};

use super::phase::{Act, PhaseShape};
use super::reading::{Faults, Source};
use crate::command::arguments::Setting;
use crate::fleet::client::profile::Names;
use crate::fleet::identity::IdentityShape;
use crate::measure::quantities::{Size, Time};
use crate::wire::kind::{Dialect, Kind};
use crate::wire::pattern::Pattern;

/// One scenario.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Scenario {
    pub(crate) description: String,
    /// How many resources there are of each type.
    #[serde(default)]
    pub(crate) world: BTreeMap<Kind, Resources>,
    #[serde(default)]
    pub(crate) control_plane: ControlPlaneShape,
    #[serde(default)]
    pub(crate) relay: RelayShape,
    #[serde(default)]
    pub(crate) clients: Clients,
    /// Whether a bare server of the same bytes runs beside the relay.
    #[serde(default)]
    pub(crate) floor: bool,
    /// Whether a second relay runs for the steady clients alone.
    #[serde(default)]
    pub(crate) calm: bool,
    #[serde(default)]
    pub(crate) tls: Option<TlsShape>,
    /// Whether clients lose their streams on purpose, so that they need not have one at the end of each phase.
    #[serde(default)]
    pub(crate) churn: bool,
    /// Where the resources of a control plane that is not this program's say when they changed: a path of fields.
    #[serde(default)]
    pub(crate) changed_at: BTreeMap<Kind, String>,
    #[serde(default)]
    pub(crate) phases: Vec<PhaseShape>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Resources {
    pub(crate) count: u32,
    #[serde(default)]
    pub(crate) bytes: Size,
    /// How many there are beyond those that clients ask for from the start.
    #[serde(default)]
    pub(crate) extras: u32,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ControlPlaneShape {
    /// The only dialect that it knows; none for both.
    pub(crate) dialect: Option<Dialect>,
    /// Whether there is a second one, which the relay asks when the first one fails.
    #[serde(default)]
    pub(crate) fallback: bool,
    /// Whether names are those of an authority, for which any failure makes the relay ask the second one (G-04).
    #[serde(default)]
    pub(crate) xdstp: bool,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RelayShape {
    /// Whether another relay stands between it and the control plane.
    #[serde(default)]
    pub(crate) above: bool,
    /// Added to the relay's configuration; `{folder}` in it is a folder of its own.
    #[serde(default)]
    pub(crate) config: String,
    /// Whether it logs no warnings, because things fail on purpose.
    #[serde(default)]
    pub(crate) quiet: bool,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TlsShape {
    #[serde(default = "yes")]
    pub(crate) resumes: bool,
    /// Whether clients must show a certificate.
    #[serde(default)]
    pub(crate) client_certificates: bool,
    /// The name in the certificate of each client, if each must show its own.
    pub(crate) client_names: Option<Pattern>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Clients {
    pub(crate) count: u32,
    #[serde(default = "one")]
    pub(crate) per_connection: u32,
    #[serde(default)]
    pub(crate) groups: Vec<Group>,
}

impl Default for Clients {
    fn default() -> Self {
        Self {
            count: 300,
            per_connection: 1,
            groups: Vec::new(),
        }
    }
}

/// A group of clients that are alike.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Group {
    pub(crate) kind: ClientKind,
    #[serde(default = "one")]
    pub(crate) weight: u32,
    /// Whether they ask the relay above.
    #[serde(default)]
    pub(crate) above: bool,
    #[serde(default)]
    pub(crate) dialect: Dialect,
    #[serde(default)]
    pub(crate) streams: Streams,
    #[serde(default)]
    pub(crate) names: Names,
    #[serde(default)]
    pub(crate) acks: AcksShape,
    /// Whether it stops reading once it has everything.
    #[serde(default)]
    pub(crate) stalls: bool,
    pub(crate) flaps: Option<Time>,
    #[serde(default)]
    pub(crate) returns: bool,
    #[serde(default = "yes")]
    pub(crate) remembers: bool,
    /// On demand: the time from one name to the next. Pollers: the time from an answer to the next poll.
    pub(crate) every: Option<Time>,
    /// Who its clients say they are; each key as the flag of `dump` with this name.
    pub(crate) node_id: Option<String>,
    pub(crate) node_cluster: Option<String>,
    pub(crate) locality: Option<String>,
    pub(crate) node_metadata: Option<PathBuf>,
    pub(crate) nodes: Option<PathBuf>,
    pub(crate) user_agent: Option<String>,
    /// Each as `KEY=VALUE`.
    #[serde(default)]
    pub(crate) headers: Vec<String>,
    pub(crate) token_file: Option<Pattern>,
    pub(crate) token_key: Option<PathBuf>,
    pub(crate) token_claims: Option<String>,
}

impl Group {
    /// Returns who its clients say they are.
    pub(crate) fn identity(&self) -> IdentityShape {
        IdentityShape {
            node_id: self.node_id.clone(),
            node_cluster: self.node_cluster.clone(),
            locality: self.locality.clone(),
            node_metadata: self.node_metadata.clone(),
            nodes: self.nodes.clone(),
            user_agent: self.user_agent.clone(),
            headers: self.headers.clone(),
            token_file: self.token_file.clone(),
            token_key: self.token_key.clone(),
            token_claims: self.token_claims.clone(),
        }
    }
}

/// What a client asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ClientKind {
    /// All listeners and clusters, then the routes and endpoints that those name.
    Envoy,
    /// Listeners by name, then what each names.
    Grpc,
    /// Clusters, one name after the other.
    OnDemand,
    /// Virtual hosts, one name after the other.
    Hosts,
    /// All clusters.
    Clusters,
    /// Endpoints by name.
    Endpoints,
    /// Like Envoy, but without streams: it polls each type over REST, `every` after the last answer.
    Poller,
    /// Istio's ztunnel: all workloads and services, and all policies of who may connect.
    Ztunnel,
    /// The same, with workloads and services one name after the other.
    ZtunnelOnDemand,
    /// As `envoy`, in v2.
    EnvoyV2,
    /// Resources of a type that no software knows, by name.
    Own,
    /// Four types: all clusters and listeners, the routes that those name, and endpoints by name.
    Names,
}

impl ClientKind {
    /// Its name in a scenario.
    pub(super) fn word(self) -> String {
        let word = serde_json::to_value(self);
        word.ok()
            .and_then(|word| Some(word.as_str()?.to_owned()))
            .unwrap_or_default()
    }
}

/// How the subscriptions of a client are spread over streams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Streams {
    #[default]
    Ads,
    /// One for each type.
    PerType,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum AcksShape {
    #[default]
    AtOnce,
    Never,
    /// After a time with this mean, exponentially distributed.
    Late(Time),
    /// Rejects one response in so many.
    RejectOneIn(u32),
}

const fn one() -> u32 {
    1
}

const fn yes() -> bool {
    true
}

macro_rules! built_in {
    ($($name:literal),* $(,)?) => {
        /// The scenarios that the program knows by name.
        pub(crate) const BUILT_IN: &[(&str, &str)] =
            &[$(($name, include_str!(concat!("../../scenarios/", $name, ".yaml")))),*];
    };
}

built_in!(
    "churn",
    "any-server",
    "by-name",
    "steady",
    "one-change",
    "connect-storm",
    "relay-restart",
    "control-plane-restart",
    "failover",
    "failover-by-name",
    "chain",
    "warm-start",
    "slow-clients",
    "shared-connections",
    "nack-storm",
    "m-of-n",
    "certificates",
    "growth",
    "chaos",
    "waves",
    "ztunnels",
    "every-type",
    "tenants",
);

impl Scenario {
    /// Returns a built-in scenario, or reads one from a file; of `FILE#NAME`, one of several in a file. Flags set some of its keys.
    pub(crate) fn find(name: &str, set: &[Setting]) -> anyhow::Result<Self> {
        if let Some((_, text)) = BUILT_IN.iter().find(|(it, _)| *it == name) {
            return Ok(Self::read(name, text, None, set)?);
        }
        let (file, row) = name
            .split_once('#')
            .map_or((name, None), |(file, row)| (file, Some(row)));
        if !Path::new(file).exists() {
            match meant(name, BUILT_IN.iter().map(|(name, _)| *name)) {
                Some(meant) => bail!("there is no file or built-in scenario `{name}`; did you mean `{meant}`?"),
                None => bail!(
                    "there is no file or built-in scenario `{name}`; `distributary-load list` lists the built-in ones"
                ),
            }
        }
        let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {file}"))?;
        Ok(Self::read(file, &text, row, set)?)
    }

    /// Parses a text, or a row of it; `name` is its origin, for faults.
    ///
    /// # Errors
    /// Returns all faults, each with its place.
    pub(crate) fn read(name: &str, text: &str, row: Option<&str>, set: &[Setting]) -> Result<Self, Faults> {
        let mut source = Source::parse(name, text, row)?;
        set.iter().try_for_each(|setting| source.set(setting))?;
        let scenario: Self = source.value()?;
        match scenario.misfits().as_slice() {
            [] => Ok(scenario),
            misfits => Err(source.faults(misfits)),
        }
    }

    /// Whether a phase makes trouble in the network.
    pub(crate) fn makes_trouble(&self) -> bool {
        self.phases.iter().any(|phase| matches!(phase.act, Act::Chaos(_)))
    }
}
