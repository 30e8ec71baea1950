// SPDX-License-Identifier: Apache-2.0
//! The types that are polled over REST, and where.
//!
//! Owns the table of paths (A-T1). Knows nothing of HTTP.

use super::TypeUrl;

/// The last part of each path, with its types in v3 and v2. H-03: a type that is not here is not polled.
#[rustfmt::skip]
static PATHS: [(&str, &str, Option<&str>); 8] = [
    ("listeners", "envoy.config.listener.v3.Listener", Some("envoy.api.v2.Listener")),
    ("routes", "envoy.config.route.v3.RouteConfiguration", Some("envoy.api.v2.RouteConfiguration")),
    ("scoped-routes", "envoy.config.route.v3.ScopedRouteConfiguration", Some("envoy.api.v2.ScopedRouteConfiguration")),
    ("clusters", "envoy.config.cluster.v3.Cluster", Some("envoy.api.v2.Cluster")),
    ("endpoints", "envoy.config.endpoint.v3.ClusterLoadAssignment", Some("envoy.api.v2.ClusterLoadAssignment")),
    ("secrets", "envoy.extensions.transport_sockets.tls.v3.Secret", Some("envoy.api.v2.auth.Secret")),
    ("runtime", "envoy.service.runtime.v3.Runtime", Some("envoy.service.discovery.v2.Runtime")),
    ("extension_configs", "envoy.config.core.v3.TypedExtensionConfig", None),
];

const NEW: &str = "/v3/discovery:";
const OLD: &str = "/v2/discovery:";

impl TypeUrl {
    /// Returns the full name of the type that is polled at a path.
    #[must_use]
    pub fn polled_at(path: &str) -> Option<&'static str> {
        let (new, part) = match (path.strip_prefix(NEW), path.strip_prefix(OLD)) {
            (Some(part), _) => (true, part),
            (None, Some(part)) => (false, part),
            (None, None) => return None,
        };
        let (_, v3, v2) = PATHS.iter().find(|(known, _, _)| *known == part)?;
        if new { Some(v3) } else { *v2 }
    }

    /// Returns the path at which the type is polled.
    pub fn path(&self) -> Option<String> {
        let name = self.full_name();
        let found = PATHS.iter().find(|(_, v3, v2)| *v3 == name || *v2 == Some(name));
        found.map(|(part, v3, _)| format!("{}{part}", if *v3 == name { NEW } else { OLD }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A-T1, H-03: each path polls a type of its own version (v3 or v2), and the type has a short name.
    #[test]
    fn every_path_has_a_known_type() {
        for (part, new, old) in PATHS {
            let short = TypeUrl::new(new).short();
            assert!(short.is_some(), "{part}");
            assert_eq!(TypeUrl::new(new).path(), Some(format!("{NEW}{part}")));
            assert_eq!(TypeUrl::polled_at(&format!("{NEW}{part}")), Some(new));
            assert_eq!(TypeUrl::polled_at(&format!("{OLD}{part}")), old);
            if let Some(old) = old {
                let expected = short.map(|short| format!("{short}_v2"));
                assert_eq!(TypeUrl::new(old).short(), expected.as_deref(), "{part}");
                assert_eq!(TypeUrl::new(old).path(), Some(format!("{OLD}{part}")));
            }
        }
        assert_eq!(TypeUrl::polled_at("/v3/discovery:"), None);
        assert_eq!(TypeUrl::new("envoy.config.route.v3.VirtualHost").path(), None);
    }
}
