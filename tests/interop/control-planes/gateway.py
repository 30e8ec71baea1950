# SPDX-License-Identifier: Apache-2.0
"""Envoy Gateway without a cluster: it reads files, would run its proxies as processes of the host, and accepts only TLS."""

import json
import re
import subprocess
import time

import grpc
import yaml

from namespace import door
from peers.manual import written
from peers.process import Failed, Process, eventually, free_port
from proxies import alone, ask

NAME = "envoy-gateway"
ENVOY_VERSION = "1.40.0"
PORT, MONITORING = 18000, 19001
CLASS = {"apiVersion": "gateway.networking.k8s.io/v1", "kind": "GatewayClass", "metadata": {"name": "eg"},
         "spec": {"controllerName": "gateway.envoyproxy.io/gatewayclass-controller"}}
# A script at the path where Envoy Gateway looks for Envoy: it records its arguments, once for each proxy.
NOTES = """#!/bin/sh
while [ $# -gt 0 ]; do
    case $1 in
        --service-cluster) cluster=$2 ;;
        --service-node) node=$2 ;;
        --config-yaml) text=$2 ;;
    esac
    shift
done
name={notes}/$(echo "$cluster" | tr / .)
printf '%s\\n%s\\n%s\\n' "$cluster" "$node" "$text" > "$name.new" && mv "$name.new" "$name"
exec sleep 3600
"""


class EnvoyGateway(Process):
    """Serves the content of files that write() replaces; a tenant is a Gateway in a namespace of its own."""

    others = ()
    agents = {}
    refused = {}
    # What a request gets whose backend does not exist: the control plane changes the route.
    missing, kept = 500, False

    def __init__(self, program, logs, doors, level="debug"):
        self.program, self.level = program, level  # Of its log; with "debug" it says which streams begin, and writes down all resources at each change.
        self.folder, self.address, self.monitoring = logs / NAME, doors / "gateway.xds", doors / "gateway.monitoring"
        self.notes, self.files = self.folder / "notes", self.folder / "resources"
        self.homes = {key: self.folder / key.lower() for key in ("configHome", "dataHome", "stateHome", "runtimeDir")}
        self.certificates = self.homes["configHome"] / "certs"
        if not self.folder.exists():
            self.prepare(program)
        doors = [(self.address, PORT), (self.monitoring, MONITORING)]
        super().__init__(NAME, alone([program, "server", "--config-path", self.folder / "settings.yaml"], doors), logs)

    def prepare(self, program):
        envoy = self.homes["dataHome"] / "envoy-versions" / ENVOY_VERSION / "bin" / "envoy"
        for folder in (*self.homes.values(), self.notes, self.files, envoy.parent):
            folder.mkdir(parents=True)
        envoy.write_text(NOTES.replace("{notes}", str(self.notes)))
        envoy.chmod(0o755)
        (self.homes["configHome"] / "envoy-version").write_text(ENVOY_VERSION)
        (self.folder / "settings.yaml").write_text(yaml.safe_dump(self.settings()))
        self.certify(program)

    def certify(self, program, *more):
        command = [program, "certgen", "--local", "--config-home", self.homes["configHome"], *more]
        subprocess.run(command, check=True, capture_output=True, timeout=60)

    def renew(self):
        """Replaces all certificates, and who signs them."""
        self.certify(self.program, "--overwrite")
        return True

    def settings(self):
        return {
            "apiVersion": "gateway.envoyproxy.io/v1alpha1", "kind": "EnvoyGateway",
            "gateway": {"controllerName": "gateway.envoyproxy.io/gatewayclass-controller"},
            "provider": {"type": "Custom", "custom": {
                "resource": {"type": "File", "file": {"paths": [str(self.files)]}},
                "infrastructure": {"type": "Host", "host": {key: str(home) for key, home in self.homes.items()}}}},
            "logging": {"level": {"default": self.level}},
            "extensionApis": {"enableBackend": True},
        }

    def write(self, tenants):
        """{tenant: ({listener: port}, {backend: [port]})}: each listener routes to the backend of its name."""
        self.publish([part for tenant, state in tenants.items() for part in gateway(tenant, *state)])

    def publish(self, parts):
        """Replaces the file; returns the time of that on the monotonic clock."""
        new = self.folder / "all.new"
        new.write_text("---\n".join(json.dumps(part) + "\n" for part in (CLASS, *parts)))
        new.rename(self.files / "all.yaml")
        return time.monotonic()

    def tenant(self, name, listeners, backends, routes):
        """The resources of a tenant, with routes of their own: {name: {"host", "rules": [{"port", "prefix", "version"}]}}."""
        return [*gateway(name, listeners, {f"b{port}": [port] for port in backends}, ()),
                *(http_route(name, key, one) for key, one in routes.items())]

    def bootstrap(self, tenant):
        """The bootstrap with which Envoy Gateway starts that tenant's proxy."""
        note = self.notes / f"{tenant}.{tenant}"
        eventually(f"Envoy Gateway starts {tenant}'s proxy", lambda: self.must_live() and note.exists(), 60)
        cluster, node, text = note.read_text().split("\n", 2)
        bootstrap = yaml.safe_load(text)
        bootstrap["node"] = {"id": node, "cluster": cluster}  # as --service-node and --service-cluster say
        return bootstrap

    def direct(self, bootstrap):
        return served_by(bootstrap, self.address)

    def relayed(self, bootstrap, relay):
        """The bootstrap with the path of a socket in place of Envoy Gateway's name; tests/interop/kubernetes has the form that is for clusters."""
        return served_by(bootstrap, relay)

    def relay(self, socket):
        """The relay's configuration in front of it, as users are told, with the paths and addresses of this place: a door leads to its
        port, because over a Unix socket the relay has no TLS."""
        port = free_port()
        door(str(socket), port)
        return self.written(f"127.0.0.1:{port}")

    def written(self, address):
        return written("envoy-gateway.yaml", {
            "0.0.0.0:15010": address, "envoy-gateway.envoy-gateway-system.svc:18000": f"unix:{self.address}",
            "/etc/distributary/": f"{self.certificates}/"})

    def plain_relay(self, socket, dialect):
        """The same for clients in plaintext, without a door on their way."""
        config = yaml.safe_load(self.written(f"unix:{socket}"))
        del config["listeners"][0]["tls"]
        config["upstream"]["xds_servers"][0]["transport"] = dialect
        return yaml.safe_dump(config)

    def plain(self, bootstrap, relay):
        """The bootstrap with the relay's address and without TLS."""
        del xds_cluster(bootstrap)["transport_socket"]
        return served_by(bootstrap, relay)

    def credentials(self):
        """What a client shows and trusts, and the name that it expects."""
        own = self.certificates / "envoy"
        files = (own / "ca.crt", own / "tls.key", own / "tls.crt")
        return grpc.ssl_channel_credentials(*(file.read_bytes() for file in files)), "envoy-gateway"

    def streams(self):
        """How many xDS streams were opened so far."""
        with self.news:
            return sum("First discovery request" in line or "First incremental discovery request" in line for line in self.lines)

    def rejections(self):
        """How many rejections it counts, and how many of each client, by the node's id."""
        counted = re.findall(r'^xds_nack_total\{.*nodeID="([^"]*)".*\} (\S+)$', ask(self.monitoring, "/metrics"), re.MULTILINE)
        clients = {client: sum(int(float(many)) for who, many in counted if who == client) for client, _ in counted}
        return sum(clients.values()), clients

    def short(self, bootstrap):
        """The id of a node."""
        return bootstrap["node"]["id"]

    def node(self, tenant, number):
        """One more client of a tenant."""
        return {"id": f"{tenant}-replica-{number}", "cluster": f"{tenant}/{tenant}"}


def gateway(tenant, listeners, backends, routed=None):
    """A Gateway, its backends, and a route from each listener, or from some, to the backend of its name."""
    meta = {"name": tenant, "namespace": tenant}
    yield {"apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway", "metadata": meta,
           "spec": {"gatewayClassName": "eg", "listeners": [
               {"name": name, "protocol": "HTTP", "port": port} for name, port in listeners.items()]}}
    for name, ports in backends.items():
        yield {"apiVersion": "gateway.envoyproxy.io/v1alpha1", "kind": "Backend", "metadata": {**meta, "name": name},
               "spec": {"endpoints": [{"ip": {"address": "127.0.0.1", "port": port}} for port in ports]}}
    for name in listeners if routed is None else routed:
        yield {"apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute", "metadata": {**meta, "name": name},
               "spec": {"parentRefs": [{"name": tenant, "sectionName": name}], "rules": [
                   {"backendRefs": [{"group": "gateway.envoyproxy.io", "kind": "Backend", "name": name}]}]}}


def http_route(tenant, name, one):
    """A route of a host; see EnvoyGateway.tenant()."""
    rules = []
    for rule in one["rules"]:
        filters = [] if rule["version"] is None else [{"type": "RequestHeaderModifier", "requestHeaderModifier": {
            "set": [{"name": "version", "value": str(rule["version"])}]}}]
        rules.append({"matches": [{"path": {"type": "PathPrefix", "value": rule["prefix"]}}], "filters": filters, "backendRefs": [
            {"group": "gateway.envoyproxy.io", "kind": "Backend", "name": f"b{rule['port']}"}]})
    return {"apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute", "metadata": {"name": name, "namespace": tenant},
            "spec": {"parentRefs": [{"name": tenant}], "hostnames": [one["host"]], "rules": rules}}


def xds_cluster(bootstrap):
    found = [cluster for cluster in bootstrap["static_resources"]["clusters"] if cluster["name"] == "xds_cluster"]
    if not found:
        raise Failed("Envoy Gateway's bootstrap has no cluster xds_cluster")
    return found[0]


def served_by(bootstrap, socket):
    cluster = xds_cluster(bootstrap)
    cluster["type"] = "STATIC"
    [[endpoint]] = [group["lb_endpoints"] for group in cluster["load_assignment"]["endpoints"]]
    endpoint["endpoint"]["address"] = {"pipe": {"path": str(socket)}}
    return bootstrap
