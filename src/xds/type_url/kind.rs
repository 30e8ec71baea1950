//! The families of types.
//!
//! Owns their order, and what all types of a family have in common. Knows nothing of single types.

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

    /// Whether resources of this kind are the targets of traffic.
    #[must_use]
    pub const fn gates(self) -> bool {
        matches!(self, Self::Cds | Self::Eds)
    }

    /// Whether resources of this kind are addresses of endpoints, which change all the time and may be dead soon.
    #[must_use]
    pub const fn is_endpoints(self) -> bool {
        matches!(self, Self::Eds | Self::Leds)
    }
}
