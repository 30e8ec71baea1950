"""Envoy Gateway without a cluster: it reads files, would run its proxies as processes of the host, and accepts only TLS."""

import subprocess

import yaml

from peers.process import Failed, Process, eventually
from proxies import alone

NAME = "envoy-gateway"
ENVOY_VERSION = "1.40.0"
PORT = 18000
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

    def __init__(self, program, logs, doors):
        self.folder, self.address = logs / NAME, doors / "gateway.xds"
        self.notes, self.files = self.folder / "notes", self.folder / "resources"
        self.homes = {key: self.folder / key.lower() for key in ("configHome", "dataHome", "stateHome", "runtimeDir")}
        self.certificates = self.homes["configHome"] / "certs"
        if not self.folder.exists():
            self.prepare(program)
        super().__init__(NAME, alone([program, "server", "--config-path", self.folder / "settings.yaml"], [(self.address, PORT)]), logs)

    def prepare(self, program):
        envoy = self.homes["dataHome"] / "envoy-versions" / ENVOY_VERSION / "bin" / "envoy"
        for folder in (*self.homes.values(), self.notes, self.files, envoy.parent):
            folder.mkdir(parents=True)
        envoy.write_text(NOTES.replace("{notes}", str(self.notes)))
        envoy.chmod(0o755)
        (self.homes["configHome"] / "envoy-version").write_text(ENVOY_VERSION)
        (self.folder / "settings.yaml").write_text(yaml.safe_dump(self.settings()))
        command = [program, "certgen", "--local", "--config-home", self.homes["configHome"]]
        subprocess.run(command, check=True, capture_output=True, timeout=60)

    def settings(self):
        return {
            "apiVersion": "gateway.envoyproxy.io/v1alpha1", "kind": "EnvoyGateway",
            "gateway": {"controllerName": "gateway.envoyproxy.io/gatewayclass-controller"},
            "provider": {"type": "Custom", "custom": {
                "resource": {"type": "File", "file": {"paths": [str(self.files)]}},
                "infrastructure": {"type": "Host", "host": {key: str(home) for key, home in self.homes.items()}}}},
            "logging": {"level": {"default": "debug"}},
            "extensionApis": {"enableBackend": True},
        }

    def write(self, tenants):
        """{tenant: ({listener: port}, {backend: [port]})}: each listener routes to the backend of its name."""
        parts = [{"apiVersion": "gateway.networking.k8s.io/v1", "kind": "GatewayClass", "metadata": {"name": "eg"},
                  "spec": {"controllerName": "gateway.envoyproxy.io/gatewayclass-controller"}}]
        for tenant, state in tenants.items():
            parts += gateway(tenant, *state)
        new = self.folder / "all.new"
        new.write_text("---\n".join(yaml.safe_dump(part) for part in parts))
        new.rename(self.files / "all.yaml")

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
        """The bootstrap as a user changes it: with the relay's address, and without TLS, because the relay here has none."""
        del xds_cluster(bootstrap)["transport_socket"]
        return served_by(bootstrap, relay)

    def relay(self, socket):
        """The relay's configuration in front of it."""
        return yaml.safe_dump({
            "node": {"id": "relay"},
            "listeners": [{"address": f"unix:{socket}"}],
            "upstream": {"xds_servers": [{
                "server_uri": f"unix:{self.address}",
                "channel_creds": [{"type": "tls", "config": {
                    "server_name": "envoy-gateway",
                    "ca_certificate_file": str(self.certificates / "envoy" / "ca.crt"),
                    "certificate_file": str(self.certificates / "envoy" / "tls.crt"),
                    "private_key_file": str(self.certificates / "envoy" / "tls.key")}}]}]},
            "classes": [{"key": ["cluster"], "node": {"id": "relay/{cluster}"}}],
        })

    def streams(self):
        """How many xDS streams were opened so far."""
        with self.news:
            return sum("First discovery request" in line or "First incremental discovery request" in line for line in self.lines)

    def node(self, tenant, number):
        """One more client of a tenant."""
        return {"id": f"{tenant}-replica-{number}", "cluster": f"{tenant}/{tenant}"}


def gateway(tenant, listeners, backends):
    meta = {"name": tenant, "namespace": tenant}
    yield {"apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway", "metadata": meta,
           "spec": {"gatewayClassName": "eg", "listeners": [
               {"name": name, "protocol": "HTTP", "port": port} for name, port in listeners.items()]}}
    for name, ports in backends.items():
        yield {"apiVersion": "gateway.envoyproxy.io/v1alpha1", "kind": "Backend", "metadata": {**meta, "name": name},
               "spec": {"endpoints": [{"ip": {"address": "127.0.0.1", "port": port}} for port in ports]}}
    for name in listeners:
        yield {"apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute", "metadata": {**meta, "name": name},
               "spec": {"parentRefs": [{"name": tenant, "sectionName": name}], "rules": [
                   {"backendRefs": [{"group": "gateway.envoyproxy.io", "kind": "Backend", "name": name}]}]}}


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
