// SPDX-License-Identifier: Apache-2.0
//! The families of types.
//!
//! Owns their order, and the table of what all types of a family have in common. Knows nothing of single types.

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

/// One resource in words, and several; the kind of what it names, if it names it alone; what it is.
struct Row(&'static str, &'static str, Option<Kind>, u16);

const DIRECTS: u16 = 1;
const TARGET: u16 = 1 << 1;
const ENDPOINTS: u16 = 1 << 2;
const SECRET: u16 = 1 << 3;
const REFERS: u16 = 1 << 4;
const REFERRED: u16 = 1 << 5;
const JUDGED: u16 = 1 << 6;
const LEAF: u16 = 1 << 7;
const VOID: u16 = 1 << 8;
const WARMS: u16 = 1 << 9;
const LISTENS: u16 = 1 << 10;

impl Kind {
    /// The table of what the kinds are.
    #[rustfmt::skip]
    const fn row(self) -> Row {
        match self {
            Self::Cds => Row("cluster", "clusters", Some(Self::Eds), TARGET | REFERS | REFERRED | JUDGED),
            Self::Eds => Row("endpoints of", "endpoints of", None, TARGET | ENDPOINTS | REFERRED | JUDGED | LEAF | WARMS),
            Self::Leds => Row("locality endpoints", "locality endpoints", None, ENDPOINTS | JUDGED | LEAF),
            Self::Lds => Row("listener", "listeners", Some(Self::Rds), DIRECTS | REFERS | JUDGED | LISTENS),
            Self::Rds => Row("route configuration", "route configurations", None, DIRECTS | REFERS | REFERRED | JUDGED),
            Self::Srds => Row("scoped route", "scoped routes", Some(Self::Rds), DIRECTS | REFERS | JUDGED),
            Self::Vhds => Row("virtual host", "virtual hosts", None, DIRECTS | REFERS | JUDGED | VOID),
            Self::Sds => Row("secret", "secrets", None, SECRET | LEAF),
            Self::Rtds => Row("runtime layer", "runtime layers", None, LEAF),
            Self::Ecds => Row("extension configuration", "extension configurations", None, DIRECTS | JUDGED),
            Self::Other => Row("", "", None, JUDGED),
        }
    }

    const fn is(self, what: u16) -> bool {
        self.row().3 & what != 0
    }

    /// Whether resources of this kind send traffic to clusters, and so must not overtake them (D-01, D-04).
    #[must_use]
    pub const fn gated(self) -> bool {
        self.is(DIRECTS)
    }

    /// Whether resources of this kind are the targets of traffic.
    #[must_use]
    pub const fn gates(self) -> bool {
        self.is(TARGET)
    }

    /// Whether resources of this kind are addresses of endpoints, which change all the time and may be dead soon.
    #[must_use]
    pub const fn is_endpoints(self) -> bool {
        self.is(ENDPOINTS)
    }

    /// Whether resources of this kind are secrets.
    #[must_use]
    pub const fn is_secret(self) -> bool {
        self.is(SECRET)
    }

    /// Whether older content is of no use: an old key may be what must not be used, and older endpoints lead nowhere.
    #[must_use]
    pub const fn is_fleeting(self) -> bool {
        self.is(ENDPOINTS | SECRET)
    }

    /// Whether resources of this kind can refer to others, by the names that the relay reads.
    #[must_use]
    pub const fn refers(self) -> bool {
        self.is(REFERS)
    }

    /// Whether resources of this kind can be referred to.
    #[must_use]
    pub const fn is_referred(self) -> bool {
        self.is(REFERRED)
    }

    /// Whether resources of this kind are route configurations: they direct traffic where another resource names them.
    #[must_use]
    pub const fn is_routes(self) -> bool {
        self.gated() && self.is_referred()
    }

    /// Whether resources of this kind are what clusters take their endpoints from.
    #[must_use]
    pub const fn is_assignment(self) -> bool {
        self.is_endpoints() && self.is_referred()
    }

    /// Whether losses of this kind are judged. Secrets and runtime layers never are: what an old secret lets in may be what an operator
    /// wants to keep out.
    #[must_use]
    pub const fn is_judged(self) -> bool {
        self.is(JUDGED)
    }

    /// Whether resources of this kind lead to nothing else that is discovered.
    #[must_use]
    pub const fn is_leaf(self) -> bool {
        self.is(LEAF)
    }

    /// C-21: whether an entry without a body means that the resource does not exist; for other kinds it may be a heartbeat.
    #[must_use]
    pub const fn is_void_without_body(self) -> bool {
        self.is(VOID)
    }

    /// Returns the kind of what resources of this kind name, if they name it alone: the endpoints of a cluster, the routes of a listener or
    /// scope.
    #[must_use]
    pub const fn names(self) -> Option<Self> {
        self.row().2
    }

    /// Whether resources of this kind name endpoints.
    #[must_use]
    pub const fn names_endpoints(self) -> bool {
        matches!(self.names(), Some(Self::Eds))
    }

    /// Whether resources of this kind name routes.
    #[must_use]
    pub const fn names_routes(self) -> bool {
        matches!(self.names(), Some(Self::Rds))
    }

    /// K-13: whether clusters wait for resources of this kind before they are used.
    #[must_use]
    pub const fn warms(self) -> bool {
        self.is(WARMS)
    }

    /// Whether traffic begins at resources of this kind: they take addresses, of which no two may be the same.
    #[must_use]
    pub const fn listens(self) -> bool {
        self.is(LISTENS)
    }

    /// Returns the words for one resource, and for several. Of other types than these, the type is the word.
    #[must_use]
    pub fn nouns(self) -> Option<(&'static str, &'static str)> {
        match self.row() {
            Row("", ..) => None,
            Row(one, several, ..) => Some((one, several)),
        }
    }
}
