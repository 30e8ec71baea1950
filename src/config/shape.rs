//! The file as written: keys and scalars, each with its place. Owns the keys; validates no values.

use std::collections::BTreeMap;

use super::bootstrap::{NodeShape, TlsConfig, Upstream, XdsServer};
use super::reading::{Raw, Scalar, Shape, ShapeFaults, Spanned, mapping, read_word_or, word_or};
use crate::json::Tree;

mapping!(File {
    "node" => node: NodeShape,
    "listeners" => listeners: Option<Spanned<Vec<Listener>>>,
    "jwt" => jwt: Vec<Spanned<Issuer>>,
    "admin" => admin: Admin,
    "probes" => probes: Option<Probes>,
    "upstream" => upstream: Upstream,
    "sources" => sources: Vec<Spanned<Source>>,
    "canary" => canary: Option<Spanned<Canary>>,
    "classes" => classes: Vec<Spanned<Class>>,
    "rules" => rules: Option<Spanned<Vec<Spanned<AccessRule>>>>,
    "secrets" => secrets: Option<Scalar>,
    "limits" => limits: LimitsShape,
    "timers" => timers: TimersShape,
    "guard" => guard: Option<GuardShape>,
    "verdicts" => verdicts: Option<VerdictsShape>,
    "chunk" => chunk: Option<Scalar>,
    "transport_v2" => transport_v2: Option<bool>,
    "anonymous" => anonymous: Option<bool>,
    "types" => types: Vec<Type>,
    "descriptors" => descriptors: Vec<Scalar>,
    "snapshot" => snapshot: Option<Spanned<Snapshot>>,
    "unknown_fields" => unknown_fields: Option<Scalar>,
    "logging" => logging: Logging,
});

mapping!(Logging {
    "level" => level: Option<Scalar>,
});

mapping!(Listener {
    "address" needs => address: Option<Scalar>,
    "tls" => tls: Option<Spanned<ListenerTls>>,
    "mode" => mode: Option<Scalar>,
    "owner" => owner: Option<Scalar>,
    "group" => group: Option<Scalar>,
    "proxy_protocol" => proxy_protocol: Option<Spanned<ProxyProtocol>>,
    "require" => require: Option<Scalar>,
    "insecure_secrets" => insecure_secrets: Option<bool>,
});

mapping!(ProxyProtocol {
    "from" needs => from: Option<Spanned<Vec<Scalar>>>,
});

mapping!(ListenerTls {
    "certificate" needs_unless_spiffe => certificate: Option<Scalar>,
    "private_key" needs_unless_spiffe => private_key: Option<Scalar>,
    "spiffe" => spiffe: Option<Raw>,
    "certificates" => certificates: Vec<CertificatePair>,
    "minimum_tls_version" => minimum_tls_version: Option<Scalar>,
    "client_ca" => client_ca: Option<Scalar>,
    "client_crl" => client_crl: Option<Scalar>,
});

mapping!(Spiffe {
    "socket" => socket: Option<Scalar>,
    "hint" => hint: Option<Scalar>,
});

mapping!(CertificatePair {
    "certificate" needs => certificate: Option<Scalar>,
    "private_key" needs => private_key: Option<Scalar>,
});

mapping!(Issuer {
    "issuer" needs => issuer: Option<Scalar>,
    "audiences" needs => audiences: Option<Spanned<Vec<Scalar>>>,
    "jwks_file" => jwks_file: Option<Scalar>,
    "jwks_uri" => jwks_uri: Option<Scalar>,
    "ca_certificate_file" => ca_certificate_file: Option<Scalar>,
    "token_file" => token_file: Option<Scalar>,
    "clock_skew" => clock_skew: Option<Scalar>,
});

mapping!(Admin {
    "address" => address: Option<Scalar>,
    "tls" => tls: Option<Spanned<ListenerTls>>,
    "rules" => rules: Option<Spanned<Vec<Spanned<AdminRule>>>>,
    "hosts" => hosts: Option<Texts>,
});

mapping!(Probes {
    "address" needs => address: Option<Scalar>,
});

mapping!(Source {
    "name" => name: Option<Scalar>,
    "types" needs => types: Option<Texts>,
    "xds_servers" needs => xds_servers: Option<Spanned<Vec<Spanned<XdsServer>>>>,
    "fallback_on_reachability_only" => fallback_on_reachability_only: Option<bool>,
    "shared" => shared: Option<Spanned<bool>>,
    "node" => node: Option<Spanned<NodeShape>>,
});

mapping!(Class {
    "match" => matching: BTreeMap<String, Scalar>,
    "key" => key: Vec<Scalar>,
    "node" => node: ClassNode,
    "credentials" => credentials: Option<Spanned<ClassCredentials>>,
    "guard" => guard: Option<GuardShape>,
    "xds_servers" => xds_servers: Option<Spanned<Vec<Spanned<XdsServer>>>>,
    "canary" => canary: Option<Spanned<Canary>>,
});

mapping!(Canary {
    "share" needs => share: Option<Scalar>,
    "xds_servers" needs => xds_servers: Option<Spanned<Vec<Spanned<XdsServer>>>>,
});

mapping!(ClassCredentials {
    "certificate_file" => certificate_file: Option<Scalar>,
    "private_key_file" => private_key_file: Option<Scalar>,
    "jwt_token_file" => jwt_token_file: Option<Scalar>,
});

mapping!(AccessRule {
    "name" needs => name: Option<Scalar>,
    "identities" => identities: Option<Texts>,
    "nodes" => nodes: RuleNodes,
    "dialects" => dialects: Option<Texts>,
    "types" => types: Option<Texts>,
    "names" => names: Option<Texts>,
    "authorities" => authorities: Option<Texts>,
    "action" => action: Option<Scalar>,
    "relay" => relay: Option<Spanned<bool>>,
});

mapping!(RuleNodes {
    "id" => id: Option<Texts>,
    "cluster" => cluster: Option<Texts>,
    "metadata" => metadata: BTreeMap<String, Texts>,
});

mapping!(AdminRule {
    "identities" => identities: Option<Texts>,
    "allow" needs => allow: Option<Texts>,
});

/// One text, or a list of texts.
pub(super) type Texts = Spanned<TextList>;

/// The texts of a list, or one text alone.
#[derive(Clone, Debug, Default)]
pub(super) struct TextList(pub(super) Vec<Scalar>);

impl Shape for TextList {
    fn read(tree: &Tree, key: &str, found: &mut ShapeFaults) -> Option<Self> {
        if tree.text().is_some() {
            return Scalar::read(tree, key, found).map(|text| Self(vec![text]));
        }
        if tree.items().is_none() {
            found.expected("a text, or a list of texts", tree, key);
            return None;
        }
        Vec::read(tree, key, found).map(Self)
    }

    fn schema() -> serde_json::Value {
        word_or(Vec::<Scalar>::schema())
    }
}

/// The `node` of a class: what control planes see of its clients.
#[derive(Clone, Debug)]
pub(super) enum ClassNode {
    /// Parts of the node.
    Parts(Box<ClassNodeParts>),
    /// A word.
    Word(Scalar),
}

mapping!(ClassNodeParts {
    "id" => id: Option<Scalar>,
    "cluster" => cluster: Option<Scalar>,
    "metadata" => metadata: Option<Members>,
    "locality" => locality: Option<Scalar>,
    "user_agent" => user_agent: Option<Scalar>,
});

/// Members of metadata.
#[derive(Clone, Debug)]
pub(super) enum Members {
    /// A list of members.
    List(Vec<Scalar>),
    /// A word.
    Word(Scalar),
}

impl Default for ClassNode {
    fn default() -> Self {
        Self::Parts(Box::default())
    }
}

impl Shape for ClassNode {
    fn read(tree: &Tree, key: &str, found: &mut ShapeFaults) -> Option<Self> {
        read_word_or((tree, key, found), "`client`, or a mapping", Self::Word, |parts| {
            Self::Parts(Box::new(parts))
        })
    }

    fn schema() -> serde_json::Value {
        word_or(ClassNodeParts::schema())
    }
}

impl Shape for Members {
    fn read(tree: &Tree, key: &str, found: &mut ShapeFaults) -> Option<Self> {
        if tree.text().is_some() {
            return Scalar::read(tree, key, found).map(Self::Word);
        }
        if tree.items().is_none() {
            found.expected("`all`, or a list", tree, key);
            return None;
        }
        Vec::read(tree, key, found).map(Self::List)
    }

    fn schema() -> serde_json::Value {
        word_or(Vec::<Scalar>::schema())
    }
}

mapping!(LimitsShape {
    "connections" => connections: Option<Scalar>,
    "connections_per_identity" => connections_per_identity: Option<Scalar>,
    "streams" => streams: Option<Scalar>,
    "streams_per_identity" => streams_per_identity: Option<Scalar>,
    "new_streams_per_second" => new_streams_per_second: Option<Scalar>,
    "subscriptions" => subscriptions: Option<Scalar>,
    "streams_per_connection" => streams_per_connection: Option<Scalar>,
    "types_per_stream" => types_per_stream: Option<Scalar>,
    "names_per_stream" => names_per_stream: Option<Scalar>,
    "name_bytes" => name_bytes: Option<Scalar>,
    "window_bytes" => window_bytes: Option<Scalar>,
    "node_bytes" => node_bytes: Option<Scalar>,
    "memory" => memory: Option<Scalar>,
    "request" => request: Option<Scalar>,
    "upstream_message" => upstream_message: Option<Scalar>,
    "requests_per_second" => requests_per_second: Option<Scalar>,
    "handshakes" => handshakes: Option<Scalar>,
    "views" => views: Option<Scalar>,
    "names_per_view" => names_per_view: Option<Scalar>,
    "pinned_bytes_per_view" => pinned_bytes_per_view: Option<Scalar>,
    "history_bytes" => history_bytes: Option<Scalar>,
});

mapping!(TimersShape {
    "linger" => linger: Option<Scalar>,
    "does_not_exist" => does_not_exist: Option<Scalar>,
    "unanswered" => unanswered: Option<Scalar>,
    "move" => move_after: Option<Scalar>,
    "wildcard_quiet" => wildcard_quiet: Option<Scalar>,
    "order_gate" => order_gate: Option<Scalar>,
    "removal_quiet" => removal_quiet: Option<Scalar>,
    "write_stall" => write_stall: Option<Scalar>,
    "keepalive" => keepalive: Option<Scalar>,
    "stream_age" => stream_age: Option<Scalar>,
    "stream_age_jitter" => stream_age_jitter: Option<Scalar>,
    "rest_poll" => rest_poll: Option<Scalar>,
    "rest_interval" => rest_interval: Option<Scalar>,
    "reconnect_max" => reconnect_max: Option<Scalar>,
    "drain_announce" => drain_announce: Option<Scalar>,
    "drain" => drain: Option<Scalar>,
});

/// Which removals are held.
#[derive(Clone, Debug)]
pub(super) enum GuardShape {
    /// Its parts.
    Parts(Box<GuardParts>),
    /// A word.
    Word(Scalar),
}

mapping!(GuardParts {
    "references" => references: Option<Scalar>,
    "mass" => mass: MassShape,
    "unready" => unready: Option<Scalar>,
});

/// When content is condemned.
#[derive(Clone, Debug)]
pub(super) enum VerdictsShape {
    /// Its parts.
    Parts(VerdictParts),
    /// A word.
    Word(Scalar),
}

mapping!(VerdictParts {
    "after" => after: Option<Scalar>,
});

mapping!(MassShape {
    "share" => share: Option<Scalar>,
    "at_least" => at_least: AtLeast,
    "emptied" => emptied: Option<Scalar>,
    "within" => within: Option<Scalar>,
    "hold" => hold: Option<HoldShape>,
});

/// How long losses are held.
#[derive(Clone, Debug)]
pub(super) enum HoldShape {
    /// By type.
    Parts(HoldParts),
    /// Equally long.
    All(Scalar),
}

mapping!(HoldParts {
    "endpoints" => endpoints: Option<Scalar>,
    "other" => other: Option<Scalar>,
});

impl Shape for HoldShape {
    fn read(tree: &Tree, key: &str, found: &mut ShapeFaults) -> Option<Self> {
        read_word_or(
            (tree, key, found),
            "a time, or `endpoints` and `other`",
            Self::All,
            Self::Parts,
        )
    }

    fn schema() -> serde_json::Value {
        word_or(HoldParts::schema())
    }
}

mapping!(AtLeast {
    "listeners" => listeners: Option<Scalar>,
    "other" => other: Option<Scalar>,
});

impl Shape for VerdictsShape {
    fn read(tree: &Tree, key: &str, found: &mut ShapeFaults) -> Option<Self> {
        read_word_or((tree, key, found), "`off`, or a mapping", Self::Word, Self::Parts)
    }

    fn schema() -> serde_json::Value {
        word_or(VerdictParts::schema())
    }
}

impl Shape for GuardShape {
    fn read(tree: &Tree, key: &str, found: &mut ShapeFaults) -> Option<Self> {
        read_word_or((tree, key, found), "`off`, or a mapping", Self::Word, |parts| {
            Self::Parts(Box::new(parts))
        })
    }

    fn schema() -> serde_json::Value {
        word_or(GuardParts::schema())
    }
}

mapping!(Type {
    "type_url" needs => type_url: Option<Scalar>,
    "name_field" => name_field: Option<Scalar>,
    "wildcard" => wildcard: Option<bool>,
    "full_state" => full_state: Option<bool>,
});

mapping!(Snapshot {
    "dir" => dir: Option<Scalar>,
    "interval" => interval: Option<Scalar>,
    "include_secrets" => include_secrets: Option<bool>,
    "from" => from: Option<Texts>,
    "tls" => tls: Option<Spanned<TlsConfig>>,
});
