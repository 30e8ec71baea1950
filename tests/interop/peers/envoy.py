# SPDX-License-Identifier: Apache-2.0
"""A real Envoy, with any of its ways to use xDS."""

import json
import urllib.request
from dataclasses import dataclass

from .process import Process, eventually
from .resources import ADS, address


@dataclass(frozen=True)
class Dialect:
    """How an Envoy subscribes: all types on one stream or one stream per type, state of the world or delta; or by polling.
    `unified`: with the newer of Envoy's two implementations."""

    name: str
    api_type: str
    aggregated: bool
    unified: bool = False

    def api_config(self):
        if self.api_type == "REST":
            return {"api_type": "REST", "transport_api_version": "V3", "cluster_names": ["xds"],
                    "refresh_delay": "0.1s", "request_timeout": "2s"}
        return {"api_type": self.api_type, "transport_api_version": "V3",
                "grpc_services": [{"envoy_grpc": {"cluster_name": "xds"}}]}

    def source(self):
        """The config source that resources of this dialect name for further resources."""
        return ADS if self.aggregated else {"api_config_source": self.api_config(), "resource_api_version": "V3"}


ADS_SOTW = Dialect("ads-sotw", "GRPC", True)
ADS_DELTA = Dialect("ads-delta", "DELTA_GRPC", True)
UNIFIED_SOTW = Dialect("unified-ads-sotw", "GRPC", True, unified=True)
STREAMS_SOTW = Dialect("streams-sotw", "GRPC", False)
STREAMS_DELTA = Dialect("streams-delta", "DELTA_GRPC", False)
POLLING = Dialect("polling", "REST", False)
AGGREGATED = (ADS_SOTW, ADS_DELTA)
EVERY = (ADS_SOTW, ADS_DELTA, STREAMS_SOTW, STREAMS_DELTA)

# The longest that an Envoy waits until it connects again, in seconds, if its bootstrap says nothing.
BACK_OFF = 30.0


class Envoy(Process):
    """An Envoy that gets everything but its bootstrap from an xDS server."""

    def __init__(self, program, logs, dialect, server, node="envoy", layers=(), text=None, about=None):
        files = logs / f"{node}.yaml", logs / f"{node}.admin"
        files[0].write_text(text or json.dumps(bootstrap(dialect, server, {"id": node, "cluster": "interop", **(about or {})}, layers)))
        files[1].unlink(missing_ok=True)
        super().__init__(node, [
            program, "-c", files[0], "--admin-address-path", files[1], "--disable-hot-restart",
            "--concurrency", "1", "-l", "info", "--drain-time-s", "1",
        ], logs)
        self.admin = eventually(f"{node}'s admin address", lambda: self.must_live() and files[1].exists() and files[1].read_text())

    def ready(self, within=20.0):
        """Waits until the first configuration of every type is in use."""
        eventually(f"{self.name} is ready", lambda: self.must_live() and self.get("/ready", "").startswith("LIVE"), within)
        return self

    def get(self, path, otherwise=None):
        try:
            with urllib.request.urlopen(f"http://{self.admin}{path}", timeout=10) as answer:
                return answer.read().decode()
        except OSError:
            if otherwise is None:
                raise
            return otherwise

    def stat(self, name):
        """A counter or gauge, 0 if it does not exist (yet)."""
        for line in self.get(f"/stats?filter=^{name.replace('.', '[.]')}$").splitlines():
            return int(line.rpartition(" ")[2])
        return 0

    def rejected(self):
        """Every kind of update that it rejected, and how often."""
        lines = self.get("/stats?filter=update_rejected$").splitlines()
        return [line for line in lines if not line.endswith(": 0")]

    def clusters(self, state="active"):
        """Clusters by name that came over CDS and are active, or still warming."""
        dump = json.loads(self.get(f"/config_dump?resource=dynamic_{state}_clusters"))
        return {entry["cluster"]["name"]: entry["cluster"] for entry in dump.get("configs", ()) if "cluster" in entry}


def bootstrap(dialect, server, node, layers):
    """`server`: the address of the xDS server, or a list of several."""
    ports = []
    for one in [server] if isinstance(server, str) else server:
        host, _, port = one.rpartition(":")
        assert host == "127.0.0.1"
        ports.append(int(port))
    options = {"@type": "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions",
               "explicit_http_config": {"http2_protocol_options": {}}}
    xds = {"name": "xds", "type": "STATIC", "connect_timeout": "5s",
           "typed_extension_protocol_options": {"envoy.extensions.upstreams.http.v3.HttpProtocolOptions": options},
           "load_assignment": {"cluster_name": "xds", "endpoints": [
               {"lb_endpoints": [{"endpoint": {"address": address(port)}} for port in ports]}]}}
    if dialect is POLLING:
        # HTTP/1.1, which is the default.
        del xds["typed_extension_protocol_options"]
    dynamic = {"cds_config": dialect.source(), "lds_config": dialect.source()}
    if dialect.aggregated:
        # M-02: with this only the first request of a stream has the node.
        dynamic["ads_config"] = {**dialect.api_config(), "set_node_on_first_message_only": True}
    boot = {"node": node, "admin": {"address": address(0)},
            "static_resources": {"clusters": [xds]}, "dynamic_resources": dynamic}
    if layers or dialect.unified:
        boot["layered_runtime"] = {"layers": [
            {"name": "fixed", "static_layer": {"envoy.reloadable_features.unified_mux": dialect.unified}},
            *({"name": layer, "rtds_layer": {"name": layer, "rtds_config": dialect.source()}} for layer in layers),
            {"name": "admin", "admin_layer": {}}]}
    return boot
