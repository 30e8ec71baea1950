//! Resource types: their identity and what the protocol must know of each.
//!
//! Owns the table of known types and the operator's changes to it. Refuses to know resources.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// A resource type. Ordered make before break (D-02), then by name.
#[derive(Clone)]
pub struct TypeUrl(Row);

/// Two words, because whatever a session keeps for each of its types begins with one of these.
#[derive(Clone)]
enum Row {
    /// As the table has it.
    Known(&'static Known),
    Other(Arc<Other>),
}

/// URL, short name, traits.
type Known = (&'static str, &'static str, Traits);

/// A type that is not in the table, or to which the operator gave other traits.
struct Other {
    url: Box<str>,
    traits: Traits,
}

/// What the protocol must know of a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traits {
    /// The type's family; v2 and v3 share one.
    pub kind: Kind,
    /// Where a resource of the type carries its own name.
    pub name: NameRule,
    /// Whether an empty first request means everything (B-10, B-13).
    pub wildcard: bool,
    /// Whether a SotW answer lists all there is (B-16).
    pub full_state: bool,
}

/// The families of types, in the order in which their changes go out (D-01, D-02).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Clusters.
    Cds,
    /// Endpoints.
    Eds,
    /// Locality endpoints, and collections of them.
    Leds,
    /// Listeners.
    Lds,
    /// Routes.
    Rds,
    /// Scoped routes.
    Srds,
    /// Virtual hosts.
    Vhds,
    /// Secrets.
    Sds,
    /// Runtime layers.
    Rtds,
    /// Extension configurations.
    Ecds,
    /// Everything else.
    Other,
}

impl Kind {
    /// Whether resources of this kind send traffic to clusters, and so must not overtake them (D-01, D-04).
    #[must_use]
    pub const fn gated(self) -> bool {
        matches!(self, Self::Lds | Self::Rds | Self::Srds | Self::Vhds | Self::Ecds)
    }

    /// Whether resources of this kind are what traffic is sent to.
    #[must_use]
    pub const fn gates(self) -> bool {
        matches!(self, Self::Cds | Self::Eds)
    }
}

/// Where a resource carries its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameRule {
    /// In the string field with this number.
    Field(u32),
    /// Only in the `Resource` around it (A-10, C-21).
    Wrapper,
}

/// What every type URL that we send begins with.
const PREFIX: &str = "type.googleapis.com/";

const fn row(
    url: &'static str,
    short: &'static str,
    kind: Kind,
    name: NameRule,
    wildcard: bool,
    full_state: bool,
) -> Known {
    (
        url,
        short,
        Traits {
            kind,
            name,
            wildcard,
            full_state,
        },
    )
}

const NAME: NameRule = NameRule::Field(1);
const WRAPPER: NameRule = NameRule::Wrapper;

/// The known types: canonical URL, short name, traits.
#[rustfmt::skip]
static TABLE: [Known; 24] = [
    row("type.googleapis.com/envoy.config.cluster.v3.Cluster", "cds", Kind::Cds, NAME, true, true),
    row("type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment", "eds", Kind::Eds, NAME, false, false),
    row("type.googleapis.com/envoy.config.endpoint.v3.LbEndpoint", "leds", Kind::Leds, WRAPPER, false, false),
    row("type.googleapis.com/envoy.config.endpoint.v3.LbEndpointCollection", "leds_collection", Kind::Leds, WRAPPER, false, false),
    row("type.googleapis.com/envoy.config.listener.v3.Listener", "lds", Kind::Lds, NAME, true, true),
    row("type.googleapis.com/envoy.config.route.v3.RouteConfiguration", "rds", Kind::Rds, NAME, false, false),
    row("type.googleapis.com/envoy.config.route.v3.ScopedRouteConfiguration", "srds", Kind::Srds, NAME, true, true),
    row("type.googleapis.com/envoy.config.route.v3.VirtualHost", "vhds", Kind::Vhds, WRAPPER, true, false),
    row("type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret", "sds", Kind::Sds, NAME, false, false),
    row("type.googleapis.com/envoy.service.runtime.v3.Runtime", "rtds", Kind::Rtds, NAME, false, false),
    row("type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig", "ecds", Kind::Ecds, NAME, false, false),
    row("type.googleapis.com/ratelimit.config.ratelimit.v3.RateLimitConfig", "rlsds", Kind::Other, NAME, true, false),
    row("type.googleapis.com/envoy.extensions.filters.network.thrift_proxy.v3.RouteConfiguration", "thrift_rds", Kind::Rds, NAME, false, false),
    row("type.googleapis.com/istio.workload.Address", "istio_address", Kind::Other, WRAPPER, true, false),
    row("type.googleapis.com/istio.security.Authorization", "istio_authorization", Kind::Other, WRAPPER, true, false),
    row("type.googleapis.com/istio.networking.nds.v1.NameTable", "nds", Kind::Other, WRAPPER, true, false),
    row("type.googleapis.com/envoy.api.v2.Cluster", "cds_v2", Kind::Cds, NAME, true, true),
    row("type.googleapis.com/envoy.api.v2.ClusterLoadAssignment", "eds_v2", Kind::Eds, NAME, false, false),
    row("type.googleapis.com/envoy.api.v2.Listener", "lds_v2", Kind::Lds, NAME, true, true),
    row("type.googleapis.com/envoy.api.v2.RouteConfiguration", "rds_v2", Kind::Rds, NAME, false, false),
    row("type.googleapis.com/envoy.api.v2.ScopedRouteConfiguration", "srds_v2", Kind::Srds, NAME, true, true),
    row("type.googleapis.com/envoy.api.v2.route.VirtualHost", "vhds_v2", Kind::Vhds, WRAPPER, true, false),
    row("type.googleapis.com/envoy.api.v2.auth.Secret", "sds_v2", Kind::Sds, NAME, false, false),
    row("type.googleapis.com/envoy.service.discovery.v2.Runtime", "rtds_v2", Kind::Rtds, NAME, false, false),
];

/// What holds for a type that nobody told us anything about.
const UNKNOWN: Traits = Traits {
    kind: Kind::Other,
    name: NAME,
    wildcard: false,
    full_state: false,
};

impl TypeUrl {
    /// The type that `text` names, by the table alone. A-04: what counts is the text after the last slash.
    #[must_use]
    pub fn new(text: &str) -> Self {
        let full_name = full_name(text);
        match TABLE
            .iter()
            .find(|(url, _, _)| url.strip_prefix(PREFIX) == Some(full_name))
        {
            Some(known) => Self(Row::Known(known)),
            None => Self::other(full_name, UNKNOWN),
        }
    }

    fn other(full_name: &str, traits: Traits) -> Self {
        let url = format!("{PREFIX}{full_name}").into();
        Self(Row::Other(Arc::new(Other { url, traits })))
    }

    /// The type that people call so ([`Self::short`]).
    #[must_use]
    pub fn called(short: &str) -> Option<Self> {
        let (url, _, _) = TABLE.iter().find(|(_, known, _)| *known == short)?;
        Some(Self::new(url))
    }

    /// The canonical URL, as it goes on the wire.
    #[must_use]
    pub fn url(&self) -> &str {
        match &self.0 {
            Row::Known((url, _, _)) => url,
            Row::Other(other) => &other.url,
        }
    }

    /// The message's full name.
    #[must_use]
    pub fn full_name(&self) -> &str {
        full_name(self.url())
    }

    /// What people call the type, where it has such a name: bounded, so fit for a metric's label.
    #[must_use]
    pub fn short(&self) -> Option<&'static str> {
        TABLE
            .iter()
            .find(|(url, _, _)| *url == self.url())
            .map(|(_, short, _)| *short)
    }

    /// What the protocol must know of the type.
    #[must_use]
    pub fn traits(&self) -> &Traits {
        match &self.0 {
            Row::Known((_, _, traits)) => traits,
            Row::Other(other) => &other.traits,
        }
    }

    /// The type's family.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.traits().kind
    }

    /// Whether both refer to one row, which they need not to be equal.
    fn is(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Row::Known(one), Row::Known(other)) => std::ptr::eq(*one, *other),
            (Row::Other(one), Row::Other(other)) => Arc::ptr_eq(one, other),
            (Row::Known(_), Row::Other(_)) | (Row::Other(_), Row::Known(_)) => false,
        }
    }
}

/// The type table of one relay: the built-in one and what the operator changed (B-13).
#[derive(Clone, Debug, Default)]
pub struct Types(Arc<BTreeMap<String, TypeUrl>>);

impl Types {
    /// A table in which these full names have these traits instead of the built-in ones.
    #[must_use]
    pub fn with(overrides: BTreeMap<String, Traits>) -> Self {
        let made = |(name, traits): (String, Traits)| {
            let type_url = TypeUrl::other(&name, traits);
            (name, type_url)
        };
        Self(Arc::new(overrides.into_iter().map(made).collect()))
    }

    /// The type that `text` names.
    #[must_use]
    pub fn resolve(&self, text: &str) -> TypeUrl {
        let overridden = self.0.get(full_name(text));
        overridden.cloned().unwrap_or_else(|| TypeUrl::new(text))
    }
}

fn full_name(text: &str) -> &str {
    text.rsplit_once('/').map_or(text, |(_, name)| name)
}

impl PartialEq for TypeUrl {
    fn eq(&self, other: &Self) -> bool {
        // An operator may give a type another family, but only one and for the whole relay.
        self.is(other) || self.kind() == other.kind() && self.url() == other.url()
    }
}

impl Eq for TypeUrl {}

impl Ord for TypeUrl {
    fn cmp(&self, other: &Self) -> Ordering {
        if self.is(other) {
            return Ordering::Equal;
        }
        let kinds = self.kind().cmp(&other.kind());
        kinds.then_with(|| self.url().cmp(other.url()))
    }
}

impl PartialOrd for TypeUrl {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Hash for TypeUrl {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.url().hash(state);
    }
}

impl fmt::Display for TypeUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.full_name())
    }
}

impl fmt::Debug for TypeUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.short().unwrap_or_else(|| self.full_name()))
    }
}
