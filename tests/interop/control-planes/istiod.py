# SPDX-License-Identifier: Apache-2.0
"""istiod without a cluster: its configuration comes from files. Envoys connect in plaintext, and istiod believes their identity; the
relay connects over TLS, where each view must have a certificate of its namespace."""

import json
import os
import re
import subprocess
import time

import yaml

from peers.process import Process, eventually
from proxies import alone, ask

NAME = "istiod"
PORT, SECURE, MONITORING = 15010, 15012, 15014
SERVICE = "istiod.istio-system.svc"
# Features that only Istio's own Envoy has are switched off, and so is the certificate authority, which has no clients here.
ENVIRONMENT = {"PILOT_ENABLE_METADATA_EXCHANGE": "false", "PILOT_ENABLE_ALPN_FILTER": "false", "PILOT_ENABLE_AMBIENT": "false",
               "ENABLE_CA_SERVER": "false", "POD_NAME": "istiod", "POD_NAMESPACE": "istio-system"}
# Between workloads there is no TLS: its certificates come from an agent beside each proxy.
NO_TLS = {"apiVersion": "security.istio.io/v1", "kind": "PeerAuthentication", "metadata": {"name": "default", "namespace": "istio-system"},
         "spec": {"mtls": {"mode": "DISABLE"}}}


class Istiod(Process):
    """Serves the content of files that write() replaces; a tenant is a gateway in a namespace of its own."""

    others = ("sidecar",)
    # A type for which not Envoy but the agent beside it asks: the table of its DNS proxy.
    agents = {"sidecar": "type.googleapis.com/istio.networking.nds.v1.NameTable"}
    # What a request gets whose backend does not exist, without the relay. The relay keeps what a route names (D-09).
    missing, kept = 503, True
    # A tenant that istiod refuses, because the certificate is for another namespace, and istiod's error text.
    refused = {"green": "no identities ([spiffe://cluster.local/ns/red/sa/default]) matched green"}

    def __init__(self, program, logs, doors, level="info"):
        self.folder, self.address, self.monitoring = logs / NAME, doors / "istiod.xds", doors / "istiod.monitoring"
        self.secure, self.certificates = doors / "istiod.tls", self.folder / "certificates"
        self.files, mesh = self.folder / "configuration", self.folder / "mesh.yaml"
        if not self.folder.exists():
            self.files.mkdir(parents=True)
            mesh.write_text("enableAutoMtls: false\n")
            certify(self.certificates)
        own = self.certificates / "istiod"
        command = [program, "discovery", "--registries=", "--configDir", self.files, "--meshConfig", mesh, "--httpAddr", "127.0.0.1:8080",
                   "--grpcAddr", f"127.0.0.1:{PORT}", "--httpsAddr=", "--monitoringAddr", f"127.0.0.1:{MONITORING}",
                   "--secureGRPCAddr", f"127.0.0.1:{SECURE}", "--tlsCertFile", own / "cert.pem", "--tlsKeyFile", own / "key.pem",
                   "--caCertFile", self.certificates / "root" / "cert.pem", "--log_output_level", f"default:{level}"]
        doors = [(self.address, PORT), (self.secure, SECURE), (self.monitoring, MONITORING)]
        super().__init__(NAME, alone(command, doors), logs, {**os.environ, **ENVIRONMENT})

    def write(self, tenants):
        """{tenant: ({listener: port}, {backend: [port]})}: each listener routes to the backend of its name."""
        self.publish([part for tenant, state in tenants.items() for part in gateway(tenant, *state)])

    def publish(self, parts):
        """Replaces the file; returns the time of that on the monotonic clock."""
        new = self.folder / "all.new"
        new.write_text("---\n".join(json.dumps(part) + "\n" for part in (NO_TLS, *parts)))
        new.rename(self.files / "all.yaml")
        return time.monotonic()

    def tenant(self, name, listeners, backends, routes):
        """The resources of a tenant, with routes of their own: {name: {"host", "rules": [{"port", "prefix", "version"}]}}. Each rule leads
        to a service of its own, so that clusters come and go with their routes."""
        yield ingress(name, listeners, "*")
        for key, one in routes.items():
            for port in {rule["port"] for rule in one["rules"]}.intersection(backends):
                yield service(name, f"{key}-{port}", [port])
            yield virtual_service(name, key, one)

    def bootstrap(self, tenant):
        """The bootstrap of a gateway, or, for the name `sidecar`, of a workload in the first tenant's namespace."""
        eventually("istiod answers", lambda: self.must_live() and ask(self.monitoring, "/metrics"), 60)
        node = self.node(tenant, 0) if tenant != "sidecar" else {
            "id": "sidecar~10.0.0.9~web-0.red~red.svc.cluster.local", "cluster": "web.red", "locality": {"region": "here", "zone": "a"},
            "metadata": {"NAMESPACE": "red", "LABELS": {"app": "web", "app.kubernetes.io/name": "web"}, "ISTIO_VERSION": "1.31.0",
                         "INSTANCE_IPS": "10.0.0.9", "IDLE_TIMEOUT": "33s", "DNS_CAPTURE": "true"}}
        xds = {"name": "xds-grpc", "type": "STATIC", "connect_timeout": "1s", "typed_extension_protocol_options": {
            "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
                "@type": "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions",
                "explicit_http_config": {"http2_protocol_options": {}}}}}
        source = {"ads": {}, "initial_fetch_timeout": "0s", "resource_api_version": "V3"}
        return {"node": node, "static_resources": {"clusters": [xds]}, "dynamic_resources": {
            "lds_config": source, "cds_config": source, "ads_config": {
                "api_type": "DELTA_GRPC", "transport_api_version": "V3", "set_node_on_first_message_only": True,
                "grpc_services": [{"envoy_grpc": {"cluster_name": "xds-grpc"}}]}}}

    def direct(self, bootstrap):
        return served_by(bootstrap, self.address)

    def relayed(self, bootstrap, relay):
        """The bootstrap as a user changes it: with the relay's address."""
        return served_by(bootstrap, relay)

    def relay(self, socket):
        """The relay's configuration in front of it. istiod wants ids of its own form. It decides a gateway's configuration by its
        namespace and labels, and a sidecar's by the whole node."""
        own = self.certificates / "{metadata.NAMESPACE}"
        credentials = {"certificate_file": str(own / "cert.pem"), "private_key_file": str(own / "key.pem")}
        return yaml.safe_dump({
            "node": {"id": "relay"},
            "listeners": [{"address": f"unix:{socket}"}],
            "upstream": {"xds_servers": [{"server_uri": f"unix:{self.secure}", "channel_creds": [{"type": "tls", "config": {
                "server_name": SERVICE, "ca_certificate_file": str(self.certificates / "root" / "cert.pem")}}]}]},
            "classes": [
                {"match": {"id": "router~*"}, "key": ["metadata.NAMESPACE", "metadata.LABELS.istio"], "node": {
                    "id": "router~0.0.0.0~{metadata.LABELS.istio}.{metadata.NAMESPACE}~{metadata.NAMESPACE}.svc.cluster.local",
                    "metadata": ["ISTIO_VERSION", "CLUSTER_ID"]}, "credentials": credentials},
                {"match": {"id": "sidecar~*"}, "key": ["id", "metadata.NAMESPACE"], "node": "client", "credentials": credentials}],
        })

    def plain_relay(self, socket, dialect):
        """The same, with one dialect towards istiod."""
        config = yaml.safe_load(self.relay(socket))
        config["upstream"]["xds_servers"][0]["transport"] = dialect
        return yaml.safe_dump(config)

    plain = relayed

    def renew(self):
        """There is nothing to renew: clients ask the relay in plaintext."""

    def credentials(self):
        """Clients ask the relay in plaintext."""

    def streams(self):
        """How many clients it has now."""
        return sum(int(float(found)) for found in re.findall(r"^pilot_xds\{.*\} (\S+)$", ask(self.monitoring, "/metrics"), re.MULTILINE))

    def rejections(self):
        """How many rejections it counts, and how many of each client it logs, by the short form of a node's id."""
        counted = re.findall(r"^pilot_total_xds_rejects\{.*\} (\S+)$", ask(self.monitoring, "/metrics"), re.MULTILINE)
        with self.news:
            logged = [found[1] for line in self.lines if (found := re.search(r" ACK ERROR (\S+)-\d+ ", line))]
        return sum(int(float(one)) for one in counted), {client: logged.count(client) for client in logged}

    def short(self, bootstrap):
        """That short form."""
        return bootstrap["node"]["id"].split("~")[2]

    def node(self, tenant, number):
        """One more replica of a tenant's gateway."""
        address, domain = f"10.0.1.{number}", f"{tenant}.svc.cluster.local"
        return {"id": f"router~{address}~{tenant}-{number}.{tenant}~{domain}", "cluster": f"{tenant}.{tenant}", "metadata": {
            "NAMESPACE": tenant, "LABELS": {"istio": tenant}, "ISTIO_VERSION": "1.31.0", "INSTANCE_IPS": address}}


def certify(folder):
    """A root, istiod's certificate, and one for each namespace; the certificate of green is for another namespace."""
    folder.mkdir()
    nothing = folder / "openssl.cnf"
    nothing.write_text("[req]\ndistinguished_name = name\n[name]\n")
    names = {name: f"URI:spiffe://cluster.local/ns/{of}/sa/default" for name, of in (("red", "red"), ("blue", "blue"), ("green", "red"))}
    for name, alternative in {"root": None, "istiod": f"DNS:{SERVICE}", **names}.items():
        own, root = folder / name, folder / "root"
        own.mkdir()
        signed = ["-CA", root / "cert.pem", "-CAkey", root / "key.pem", "-addext", f"subjectAltName={alternative}"] if alternative else []
        subprocess.run(["openssl", "req", "-x509", "-config", nothing, "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                        "-days", "2", "-subj", f"/CN={name}", "-addext", f"basicConstraints=critical,CA:{'FALSE' if alternative else 'TRUE'}",
                        *signed, "-keyout", own / "key.pem", "-out", own / "cert.pem"], check=True, capture_output=True, timeout=30)


def gateway(tenant, listeners, backends):
    yield ingress(tenant, listeners)
    for name, ports in backends.items():
        yield service(tenant, name, ports)
    for name in listeners:
        rule = {"route": [{"destination": {"host": f"{name}.internal", "port": {"number": 80}}}]}
        yield networking("VirtualService", tenant, name, {"hosts": [f"{name}.example.com"], "gateways": [tenant], "http": [rule]})


def ingress(tenant, listeners, hosts=None):
    """A Gateway whose listeners serve one host each, or these hosts."""
    servers = [{"port": {"number": port, "name": f"http-{name}", "protocol": "HTTP"}, "hosts": [hosts or f"{name}.example.com"]}
               for name, port in listeners.items()]
    return networking("Gateway", tenant, tenant, {"selector": {"istio": tenant}, "servers": servers})


def service(tenant, name, ports):
    return networking("ServiceEntry", tenant, name, {
        "hosts": [f"{name}.internal"], "exportTo": ["."], "location": "MESH_INTERNAL", "resolution": "STATIC",
        "addresses": [f"240.0.0.{1 + sum(name.encode()) % 200}"], "ports": [{"number": 80, "name": "http", "protocol": "HTTP"}],
        "endpoints": [{"address": f"127.0.0.{1 + at}", "ports": {"http": port}} for at, port in enumerate(ports)]})


def virtual_service(tenant, name, one):
    """A route of a host; see Istiod.tenant()."""
    rules = []
    for rule in one["rules"]:
        destination = {"host": f"{name}-{rule['port']}.internal", "port": {"number": 80}}
        headers = {} if rule["version"] is None else {"headers": {"request": {"set": {"version": str(rule["version"])}}}}
        rules.append({"match": [{"uri": {"prefix": rule["prefix"]}}], "route": [{"destination": destination}], **headers})
    return networking("VirtualService", tenant, name, {"hosts": [one["host"]], "gateways": [tenant], "http": rules})


def networking(kind, tenant, name, spec):
    return {"apiVersion": "networking.istio.io/v1", "kind": kind, "metadata": {"name": name, "namespace": tenant}, "spec": spec}


def served_by(bootstrap, socket):
    [xds] = bootstrap["static_resources"]["clusters"]
    xds["load_assignment"] = {"cluster_name": xds["name"], "endpoints": [
        {"lb_endpoints": [{"endpoint": {"address": {"pipe": {"path": str(socket)}}}}]}]}
    return bootstrap
