// SPDX-License-Identifier: Apache-2.0
//! What the typed configurations in a listener or a route refer to.
//!
//! Owns which extensions are read: those of Envoy's own that name a cluster in plain text. Others refer to nothing, and so does a
//! configuration in a `TypedStruct`.

use super::{Collected, decoded, fields};
use proto::google::protobuf::Any;

impl Collected {
    /// Reads a network filter.
    pub(super) fn filter(&mut self, config: &Any) {
        match message(config) {
            "HttpConnectionManager" => self.manager(&decoded(&config.value)),
            "TcpProxy" => {
                let proxy: fields::TcpProxy = decoded(&config.value);
                self.clusters.insert(proxy.cluster);
                self.weighted(proxy.weighted_clusters.as_ref());
                self.access_logs(&proxy.access_log);
            }
            "RedisProxy" => self.redis(decoded(&config.value)),
            "ThriftProxy" => self.thrift(&decoded(&config.value)),
            "ExtAuthz" => self.grpc(decoded::<fields::NetworkExtAuthz>(&config.value).grpc_service),
            "NetworkExternalProcessor" => self.processor(decoded(&config.value)),
            "RateLimit" => self.rate_limit(decoded::<fields::NetworkRateLimit>(&config.value).rate_limit_service),
            _ => {}
        }
    }

    /// Reads a listener filter.
    pub(super) fn listener_filter(&mut self, config: &Any) {
        if message(config) == "UdpProxyConfig" {
            let proxy: fields::UdpProxy = decoded(&config.value);
            self.clusters.insert(proxy.cluster);
            self.access_logs(&proxy.access_log);
            self.access_logs(&proxy.proxy_access_log);
            proxy.matcher.iter().for_each(|matcher| self.matcher(matcher));
        }
    }

    pub(super) fn access_logs(&mut self, logs: &[fields::AccessLog]) {
        for config in logs.iter().filter_map(|log| log.typed_config.as_ref()) {
            if let "HttpGrpcAccessLogConfig" | "TcpGrpcAccessLogConfig" | "OpenTelemetryAccessLogConfig" =
                message(config)
            {
                let log: fields::GrpcAccessLog = decoded(&config.value);
                self.grpc(log.common_config.and_then(|common| common.grpc_service));
                self.grpc(log.grpc_service);
                self.http(log.http_service);
            }
        }
    }

    /// Reads what overrides HTTP filters for some routes.
    pub(super) fn overrides(&mut self, entries: &[fields::PerFilter]) {
        for config in entries.iter().filter_map(|entry| entry.value.as_ref()) {
            if message(config) == "FilterConfig" {
                let inner = decoded::<fields::FilterConfig>(&config.value).config;
                inner.iter().for_each(|config| self.overriding(config));
            } else {
                self.overriding(config);
            }
        }
    }

    fn overriding(&mut self, config: &Any) {
        match message(config) {
            "ExtAuthzPerRoute" => {
                let settings = decoded::<fields::ExtAuthzPerRoute>(&config.value).check_settings;
                let settings = settings.unwrap_or_default();
                self.grpc(settings.grpc_service);
                self.http(settings.http_service);
            }
            "ExtProcPerRoute" => {
                let overrides = decoded::<fields::ExtProcPerRoute>(&config.value).overrides;
                self.grpc(overrides.and_then(|overrides| overrides.grpc_service));
            }
            _ => {}
        }
    }

    fn manager(&mut self, manager: &fields::HttpConnectionManager) {
        self.routes
            .extend(manager.rds.iter().map(|rds| rds.route_config_name.clone()));
        manager.route_config.iter().for_each(|route| self.route(route));
        let scopes = manager.scoped_routes.iter();
        let scopes = scopes.filter_map(|scopes| scopes.scoped_route_configurations_list.as_ref());
        for scope in scopes.flat_map(|list| &list.scoped_route_configurations) {
            self.scope(scope);
        }
        let filters = manager.http_filters.iter();
        for config in filters.filter_map(|filter| filter.typed_config.as_ref()) {
            self.http_filter(config);
        }
        self.access_logs(&manager.access_log);
    }

    fn http_filter(&mut self, config: &Any) {
        match message(config) {
            "ExtAuthz" => {
                let filter: fields::HttpExtAuthz = decoded(&config.value);
                self.grpc(filter.grpc_service);
                self.http(filter.http_service);
            }
            "ExternalProcessor" => self.processor(decoded(&config.value)),
            "RateLimit" => self.rate_limit(decoded::<fields::HttpRateLimit>(&config.value).rate_limit_service),
            "Router" => self.access_logs(&decoded::<fields::Router>(&config.value).upstream_log),
            _ => {}
        }
    }

    fn processor(&mut self, filter: fields::ExternalProcessor) {
        self.grpc(filter.grpc_service);
        self.http(filter.http_service.and_then(|service| service.http_service));
    }

    fn rate_limit(&mut self, service: Option<fields::RateLimitService>) {
        self.grpc(service.and_then(|service| service.grpc_service));
    }

    fn redis(&mut self, proxy: fields::RedisProxy) {
        let routes = proxy.prefix_routes.unwrap_or_default();
        for route in routes.routes.into_iter().chain(routes.catch_all_route) {
            self.clusters.insert(route.cluster);
            self.clusters
                .extend(route.read_command_policy.map(|policy| policy.cluster));
            self.mirrors(&route.request_mirror_policy);
        }
        self.grpc(proxy.external_auth_provider.and_then(|provider| provider.grpc_service));
    }

    fn thrift(&mut self, proxy: &fields::ThriftProxy) {
        let routes = proxy.route_config.iter().flat_map(|config| &config.routes);
        for action in routes.filter_map(|route| route.route.as_ref()) {
            self.clusters.insert(action.cluster.clone());
            self.weighted(action.weighted_clusters.as_ref());
            self.mirrors(&action.request_mirror_policies);
        }
        self.access_logs(&proxy.access_log);
    }

    /// Reads the routes of a UDP proxy. Matchers of extensions are not read.
    fn matcher(&mut self, matcher: &fields::Matcher) {
        let listed = matcher.matcher_list.iter().flat_map(|list| &list.matchers);
        let listed = listed.filter_map(|field| field.on_match.as_ref());
        let maps = matcher
            .matcher_tree
            .iter()
            .flat_map(|tree| [&tree.exact_match_map, &tree.prefix_match_map]);
        let mapped = maps.flatten().flat_map(|map| &map.map);
        let mapped = mapped.filter_map(|entry| entry.value.as_ref());
        for on_match in listed.chain(mapped).chain(matcher.on_no_match.as_deref()) {
            let action = on_match.action.as_ref();
            match action.and_then(|action| action.typed_config.as_ref()) {
                Some(config) if message(config) == "Route" => {
                    self.clusters.insert(decoded::<fields::UdpRoute>(&config.value).cluster);
                }
                Some(_) => {}
                None => on_match.matcher.iter().for_each(|matcher| self.matcher(matcher)),
            }
        }
    }

    fn grpc(&mut self, service: Option<fields::GrpcService>) {
        let envoy = service.and_then(|service| service.envoy_grpc);
        self.clusters.extend(envoy.map(|envoy| envoy.cluster_name));
    }

    fn http(&mut self, service: Option<fields::HttpService>) {
        let uri = service.and_then(|service| service.http_uri);
        self.clusters.extend(uri.map(|uri| uri.cluster));
    }
}

/// Returns the last part of the name of one of Envoy's own messages; nothing for another message. The place in which it is written
/// tells messages with equal last parts apart.
pub(super) fn message(config: &Any) -> &str {
    let name = config.type_url.rsplit('/').next().unwrap_or_default();
    match name.starts_with("envoy.") {
        true => name.rsplit('.').next().unwrap_or_default(),
        false => "",
    }
}
