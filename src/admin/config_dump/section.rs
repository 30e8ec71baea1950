// SPDX-License-Identifier: Apache-2.0
//! The parts of a dump: in which message of Envoy's API the contents of each type stand.
//!
//! Owns these forms. Contents come without their secrets.

use serde_json::{Map, Value, json};

use crate::census::Entry;
use crate::clock::WallClock;
use crate::xds::{Name, TypeUrl};

/// The contents of one type, or of all types that have no section of their own.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Section {
    /// The full name of the type; empty: all others.
    type_name: &'static str,
    /// The message of the whole.
    message: &'static str,
    /// The field of that message with the contents.
    pub(super) field: &'static str,
    /// Within that message, the one of a content.
    element: &'static str,
    form: Placed,
}

/// Where a content stands in its element.
#[derive(Debug, PartialEq, Eq)]
enum Placed {
    /// In this field.
    Field(&'static str),
    /// In this field, beside its name.
    Named(&'static str),
    /// In this field of `active_state`.
    Active(&'static str),
    /// In this field, which is a list.
    List(&'static str),
    /// As CSDS has it.
    Generic,
}

/// The fields of Envoy's dump that are about what a relay does not have.
pub(super) const ALWAYS_EMPTY: [&str; 8] = [
    "static_clusters",
    "dynamic_warming_clusters",
    "static_listeners",
    "static_route_configs",
    "inline_scoped_route_configs",
    "static_endpoint_configs",
    "static_secrets",
    "dynamic_warming_secrets",
];

/// In Envoy's order.
const SECTIONS: [Section; 8] = [
    Section {
        type_name: "envoy.config.cluster.v3.Cluster",
        message: "envoy.admin.v3.ClustersConfigDump",
        field: "dynamic_active_clusters",
        element: "DynamicCluster",
        form: Placed::Field("cluster"),
    },
    Section {
        type_name: "envoy.config.core.v3.TypedExtensionConfig",
        message: "envoy.admin.v3.EcdsConfigDump",
        field: "ecds_filters",
        element: "EcdsFilterConfig",
        form: Placed::Field("ecds_filter"),
    },
    Section {
        type_name: ENDPOINTS,
        message: "envoy.admin.v3.EndpointsConfigDump",
        field: "dynamic_endpoint_configs",
        element: "DynamicEndpointConfig",
        form: Placed::Field("endpoint_config"),
    },
    Section {
        type_name: "envoy.config.listener.v3.Listener",
        message: "envoy.admin.v3.ListenersConfigDump",
        field: "dynamic_listeners",
        element: "DynamicListener",
        form: Placed::Active("listener"),
    },
    Section {
        type_name: "envoy.config.route.v3.ScopedRouteConfiguration",
        message: "envoy.admin.v3.ScopedRoutesConfigDump",
        field: "dynamic_scoped_route_configs",
        element: "DynamicScopedRouteConfigs",
        form: Placed::List("scoped_route_configs"),
    },
    Section {
        type_name: "envoy.config.route.v3.RouteConfiguration",
        message: "envoy.admin.v3.RoutesConfigDump",
        field: "dynamic_route_configs",
        element: "DynamicRouteConfig",
        form: Placed::Field("route_config"),
    },
    Section {
        type_name: "envoy.extensions.transport_sockets.tls.v3.Secret",
        message: "envoy.admin.v3.SecretsConfigDump",
        field: "dynamic_active_secrets",
        element: "DynamicSecret",
        form: Placed::Named("secret"),
    },
    Section {
        type_name: "",
        message: "envoy.service.status.v3.ClientConfig",
        field: "generic_xds_configs",
        element: "GenericXdsConfig",
        form: Placed::Generic,
    },
];

const ENDPOINTS: &str = "envoy.config.endpoint.v3.ClusterLoadAssignment";

impl Section {
    /// Returns all sections.
    pub(super) fn all() -> impl Iterator<Item = &'static Self> {
        SECTIONS.iter()
    }

    /// Whether it is the one that Envoy leaves out unless it is asked for.
    pub(super) fn is_endpoints(&self) -> bool {
        self.type_name == ENDPOINTS
    }

    /// Whether contents of this type stand in it.
    pub(super) fn has(&self, type_url: &TypeUrl) -> bool {
        let name = type_url.full_name();
        match self.type_name {
            "" => SECTIONS.iter().all(|section| section.type_name != name),
            own => own == name,
        }
    }

    /// Returns what stands before the first content.
    pub(super) fn head(&self) -> String {
        format!("{{\"@type\":\"{}\",\"{}\":[\n", url(self.message), self.field)
    }

    /// Returns an element with its type, as it stands alone.
    pub(super) fn typed(&self, mut element: Value) -> Value {
        if let Some(members) = element.as_object_mut() {
            members.insert(
                "@type".to_owned(),
                format!("{}.{}", url(self.message), self.element).into(),
            );
        }
        element
    }

    /// Returns an element with this content; null is that of a type that is not known.
    pub(super) fn element(&self, entry: &Entry, content: Value, clock: WallClock) -> Value {
        let resource = entry.resource.as_ref();
        let mut state = Map::new();
        state.insert(
            "version_info".to_owned(),
            resource.map(|resource| resource.version().to_string()).into(),
        );
        let updated = resource.map(|resource| clock.time(resource.received()));
        state.insert("last_updated".to_owned(), updated.into());
        let name = entry.name.as_ref().map_or("", Name::as_str);
        let mut put = |key: &str, content: Value| {
            if !content.is_null() {
                state.insert(key.to_owned(), content);
            }
        };
        match self.form {
            Placed::Field(key) => put(key, content),
            Placed::List(key) => {
                put("name", name.into());
                put(
                    key,
                    std::iter::once(content).filter(|content| !content.is_null()).collect(),
                );
            }
            Placed::Named(key) => {
                put("name", name.into());
                put(key, content);
            }
            Placed::Active(key) => {
                put(key, content);
                state = [
                    ("name".to_owned(), name.into()),
                    ("active_state".to_owned(), state.into()),
                ]
                .into_iter()
                .collect();
            }
            Placed::Generic => {
                put("name", name.into());
                put("type_url", entry.type_url.url().into());
                put("xds_config", content);
            }
        }
        state.insert("client_status".to_owned(), entry.cached.status().as_str_name().into());
        if let Some(error) = &entry.error {
            state.insert("error_state".to_owned(), json!({ "details": &*error.message }));
        }
        state.into()
    }
}

fn url(message: &str) -> String {
    format!("type.googleapis.com/{message}")
}
