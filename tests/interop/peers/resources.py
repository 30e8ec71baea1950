# SPDX-License-Identifier: Apache-2.0
"""Resources as JSON, with only the fields that scenarios need."""

PREFIX = "type.googleapis.com/"
TYPES = {
    "cds": PREFIX + "envoy.config.cluster.v3.Cluster",
    "eds": PREFIX + "envoy.config.endpoint.v3.ClusterLoadAssignment",
    "lds": PREFIX + "envoy.config.listener.v3.Listener",
    "rds": PREFIX + "envoy.config.route.v3.RouteConfiguration",
    "srds": PREFIX + "envoy.config.route.v3.ScopedRouteConfiguration",
    "vhds": PREFIX + "envoy.config.route.v3.VirtualHost",
    "sds": PREFIX + "envoy.extensions.transport_sockets.tls.v3.Secret",
    "rtds": PREFIX + "envoy.service.runtime.v3.Runtime",
    "ecds": PREFIX + "envoy.config.core.v3.TypedExtensionConfig",
}
FILTERS = PREFIX + "envoy.extensions.filters.http."
ROUTER = {"name": "router", "typed_config": {"@type": FILTERS + "router.v3.Router"}}
ADS = {"ads": {}, "resource_api_version": "V3"}


def cluster(name, source=ADS, timeout="5s", **more):
    """A cluster whose endpoints come from EDS under its own name."""
    return {"@type": TYPES["cds"], "name": name, "type": "EDS", "connect_timeout": timeout,
            "eds_cluster_config": {"eds_config": source}, **more}


def aggregate(name, *members):
    """A cluster made of others, the first of which with endpoints is used."""
    config = {"@type": PREFIX + "envoy.extensions.clusters.aggregate.v3.ClusterConfig", "clusters": list(members)}
    return {"@type": TYPES["cds"], "name": name, "connect_timeout": "5s", "lb_policy": "CLUSTER_PROVIDED",
            "cluster_type": {"name": "envoy.clusters.aggregate", "typed_config": config}}


def endpoints(name, *ports, **of_each):
    """The endpoints of a cluster: ports of the loopback interface."""
    members = [{"endpoint": {"address": address(port)}, **of_each} for port in ports]
    return {"@type": TYPES["eds"], "cluster_name": name,
            "endpoints": [{"locality": {"region": "here"}, "load_balancing_weight": 1, "lb_endpoints": members}]}


def address(port):
    return {"socket_address": {"address": "127.0.0.1", "port_value": port}}


def listener(name, port, routing, filters=(ROUTER,), transport_socket=None, **more):
    """An HTTP listener; routing is one of rds(), scoped() or an inline route configuration."""
    chain = {"filters": [{"name": "http", "typed_config": manager(routing, filters)}]}
    if transport_socket:
        chain["transport_socket"] = transport_socket
    return {"@type": TYPES["lds"], "name": name, "address": address(port), "filter_chains": [chain], **more}


def api_listener(name, routing):
    """A listener for a gRPC client; its name is the target."""
    return {"@type": TYPES["lds"], "name": name, "api_listener": {"api_listener": manager(routing, (ROUTER,))}}


def manager(routing, filters):
    return {"@type": PREFIX + "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
            "stat_prefix": "interop", "http_filters": list(filters), **routing}


def rds(name, source=ADS):
    return {"rds": {"route_config_name": name, "config_source": source}}


def scoped(header, source=ADS):
    """Routing by a header, through SRDS and RDS."""
    extractor = {"name": header, "index": 0}
    builder = {"fragments": [{"header_value_extractor": extractor}]}
    return {"scoped_routes": {"name": "scopes", "scope_key_builder": builder, "rds_config_source": source,
                              "scoped_rds": {"scoped_rds_config_source": source}}}


def scope(name, value, routes_name):
    return {"@type": TYPES["srds"], "name": name, "route_configuration_name": routes_name,
            "key": {"fragments": [{"string_key": value}]}}


def routes(name, *entries, **more):
    """A route configuration for all hosts; see to()."""
    return {"@type": TYPES["rds"], "name": name, **more,
            "virtual_hosts": [{"name": "all", "domains": ["*"], "routes": list(entries)}]}


def to(target, prefix="/", **match):
    return {"match": {"prefix": prefix, **match}, "route": {"cluster": target}}


def secret(name, pair):
    """A TLS certificate and its key."""
    return {"@type": TYPES["sds"], "name": name,
            "tls_certificate": {"certificate_chain": {"inline_string": pair["certificate"]},
                                "private_key": {"inline_string": pair["key"]}}}


def runtime(name, **layer):
    return {"@type": TYPES["rtds"], "name": name, "layer": layer}
