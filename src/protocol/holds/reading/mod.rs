// SPDX-License-Identifier: Apache-2.0
//! What the body of a resource refers to.
//!
//! Owns which fields count. What cannot be decoded refers to nothing; who asks, and when, is decided elsewhere.

mod extensions;

use std::collections::BTreeSet;

use bytes::Bytes;
use prost::Message;

use extensions::message;
use proto::distributary::references as fields;
use xds::{Kind, Name, References, Resource, Spot, TypeUrl};

const ROUTES: &str = "envoy.config.route.v3.RouteConfiguration";
const CLUSTERS: &str = "envoy.config.cluster.v3.Cluster";

/// Returns what a resource of this kind refers to. It is read once and kept with the resource.
#[must_use]
pub fn references(kind: Kind, resource: &Resource) -> Option<&References> {
    resource.references(|body| read(kind, &body))
}

/// Whether an endpoint assignment has no endpoint in any locality, and none that come by themselves (LEDS). One that cannot be
/// decoded is not empty.
pub(super) fn is_empty_assignment(resource: &Resource) -> bool {
    let Ok(assignment) = fields::ClusterLoadAssignment::decode(resource.body()) else {
        return false;
    };
    assignment.endpoints.iter().all(|locality| {
        let listed = locality.load_balancer_endpoints.iter();
        let listed = listed.flat_map(|list| &list.lb_endpoints);
        let any = !locality.lb_endpoints.is_empty() || listed.count() > 0;
        !any && locality.leds_cluster_locality_config.is_none()
    })
}

fn read(kind: Kind, body: &Bytes) -> References {
    let mut found = Collected::default();
    match kind {
        Kind::Lds => {
            found.spots.extend(Spot::of_listener(body));
            found.listener(&decoded(body));
        }
        Kind::Rds => found.route(&decoded(body)),
        Kind::Srds => found.scope(&decoded(body)),
        Kind::Vhds => {
            let host: fields::VirtualHost = decoded(body);
            found
                .spots
                .extend(host.domains.iter().map(|domain| Spot::domain(domain)));
            found.host(&host);
        }
        Kind::Cds => found.cluster(&decoded(body)),
        Kind::Eds | Kind::Leds | Kind::Sds | Kind::Rtds | Kind::Ecds | Kind::Other => {}
    }
    found.into()
}

/// Decodes the fields that count. What cannot be decoded is empty.
fn decoded<M: Message + Default>(body: &Bytes) -> M {
    M::decode(body.clone()).unwrap_or_default()
}

/// The names that were found so far, each once.
#[derive(Default)]
struct Collected {
    routes: BTreeSet<String>,
    clusters: BTreeSet<String>,
    spots: Vec<Spot>,
}

impl Collected {
    fn listener(&mut self, listener: &fields::Listener) {
        let chains = listener.filter_chains.iter().chain(&listener.default_filter_chain);
        let filters = chains.flat_map(|chain| &chain.filters);
        let filters = filters.filter_map(|filter| filter.typed_config.as_ref());
        let api = listener.api_listener.iter();
        let api = api.filter_map(|api| api.api_listener.as_ref());
        for config in filters.chain(api) {
            self.filter(config);
        }
        let filters = listener.listener_filters.iter();
        for config in filters.filter_map(|filter| filter.typed_config.as_ref()) {
            self.listener_filter(config);
        }
        self.access_logs(&listener.access_log);
    }

    fn scope(&mut self, scope: &fields::ScopedRouteConfiguration) {
        self.routes.insert(scope.route_configuration_name.clone());
        scope.route_configuration.iter().for_each(|route| self.route(route));
    }

    fn route(&mut self, route: &fields::RouteConfiguration) {
        self.mirrors(&route.request_mirror_policies);
        self.overrides(&route.typed_per_filter_config);
        route.virtual_hosts.iter().for_each(|host| self.host(host));
    }

    fn host(&mut self, host: &fields::VirtualHost) {
        self.mirrors(&host.request_mirror_policies);
        self.overrides(&host.typed_per_filter_config);
        for route in &host.routes {
            self.overrides(&route.typed_per_filter_config);
            let Some(action) = &route.route else {
                continue;
            };
            if !self.clusters.contains(&action.cluster) {
                self.clusters.insert(action.cluster.clone());
            }
            self.weighted(action.weighted_clusters.as_ref());
            self.mirrors(&action.request_mirror_policies);
            let earlier = action.request_mirror_policy.iter();
            self.clusters.extend(earlier.map(|mirror| mirror.cluster.clone()));
        }
    }

    fn weighted(&mut self, weighted: Option<&fields::WeightedClusters>) {
        for cluster in weighted.into_iter().flat_map(|weighted| &weighted.clusters) {
            self.clusters.insert(cluster.name.clone());
            self.overrides(&cluster.typed_per_filter_config);
        }
    }

    fn mirrors(&mut self, mirrors: &[fields::Mirror]) {
        self.clusters
            .extend(mirrors.iter().map(|mirror| mirror.cluster.clone()));
    }

    fn cluster(&mut self, cluster: &fields::Cluster) {
        let config = cluster.cluster_type.iter();
        let config = config.filter_map(|custom| custom.typed_config.as_ref());
        let aggregate =
            config.filter(|config| config.type_url.contains(".aggregate.") && message(config) == "ClusterConfig");
        for config in aggregate {
            self.clusters
                .extend(decoded::<fields::AggregateClusterConfig>(&config.value).clusters);
        }
    }
}

impl From<Collected> for References {
    fn from(found: Collected) -> Self {
        // A name that is not set is the empty text.
        let names = |texts: BTreeSet<String>, of: &str| {
            let of = TypeUrl::new(of);
            let texts = texts.into_iter().filter(|text| !text.is_empty());
            let mut names: Vec<Name> = texts.map(|text| Name::read(&text, &of)).collect();
            names.sort_unstable();
            names.into_boxed_slice()
        };
        Self {
            routes: names(found.routes, ROUTES),
            clusters: names(found.clusters, CLUSTERS),
            spots: found.spots.into(),
        }
    }
}
