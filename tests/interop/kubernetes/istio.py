# SPDX-License-Identifier: Apache-2.0
"""istiod from its charts, with tokens of service accounts: gateways go to the relay and back, while the relay is upgraded, istiod starts with a
new root, and the API server refuses the relay's token; and a program of proxyless gRPC with twenty targets."""

import json
import re
import time
from collections import Counter

from applied import CONFIG
from cluster import HOST
from peers.process import Failed, Process, eventually
from pods import Pod
from story import BACKEND, SHOP, Story, service

HOME, SYSTEM, ROOT = "edge", "istio-system", "/etc/mesh/root-cert.pem"
TARGETS = [f"xds:///grpc-{number}.default.svc.cluster.local:80" for number in range(20)]
# What only Istio's own Envoy has is off; webhooks cannot be reached without a network for Services.
OFF = ("--set-string", "env.PILOT_ENABLE_METADATA_EXCHANGE=false", "--set-string", "env.PILOT_ENABLE_ALPN_FILTER=false",
       "--set", "telemetry.enabled=false", "--set", "meshConfig.enableAutoMtls=false", "--set", "global.configValidation=false",
       "--set", "global.tag=none", "--set", "autoscaleEnabled=false")


class Istio(Story):
    home, system, plane, story = HOME, SYSTEM, "istiod", "istio-tokens"
    labels, port = {"app": "istiod"}, 8080
    known_as = ("xds-grpc",)
    parts = ("way_in", "relay_upgraded", "proxyless", "root_replaced", "token_refused", "way_back")

    def __init__(self, cluster, options):
        super().__init__(cluster, options, {"discovery": options.istiod, "program": options.peers})
        self.charts, self.peers, self.server = options.istio, options.peers, ("istiod.istio-system.svc.cluster.local", 15012, ROOT)

    def written(self):
        return self.cluster.get(f"/apis/apps/v1/namespaces/{HOME}/deployments/gateway")

    # The story.

    def begin(self):
        for chart, more in (("base", ()), ("istio-discovery", OFF)):
            self.cluster.helm("install", chart, self.charts / chart, "--namespace", SYSTEM, "--create-namespace", *more)
        self.cluster.kubectl("delete", "mutatingwebhookconfiguration,validatingwebhookconfiguration", "--all")
        named = lambda kind, name, **more: {"apiVersion": "v1", "kind": kind, "metadata": {"name": name, **more}}
        self.cluster.apply(named("Namespace", HOME), named("ServiceAccount", HOME, namespace=HOME))
        self.cluster.certificate(HOME, "distributary-tls", f"relay-distributary.{HOME}.svc.cluster.local")
        self.run_controller()
        self.root = self.mesh_root()
        self.turn(self.server)
        self.cluster.apply(networking("Gateway", HOME, {"selector": {"istio": HOME}, "servers": [
            {"port": {"number": self.port, "name": "http", "protocol": "HTTP"}, "hosts": [SHOP]}]}))
        self.set_out()

    def mesh_root(self, old=None):
        """The root that istiod writes into the namespace."""
        path = f"/api/v1/namespaces/{HOME}/configmaps/istio-ca-root-cert"
        found = lambda: (self.cluster.get(path) or {}).get("data", {}).get("root-cert.pem")
        return eventually("istiod writes its root", lambda: found() if found() != old else None, 60)

    def turn(self, server):
        """The gateways' bootstrap leads there."""
        self.cluster.apply(*gateways(*server))

    def way_in(self):
        self.install_relay()
        self.turn((f"relay-distributary.{HOME}.svc.cluster.local", 15012, "/etc/relay/ca.crt"))
        self.rolled_out("the relay")
        eventually("istiod has at most one stream for each relay", lambda: 0 < self.streams() <= len(self.relays))
        self.step(f"the way in; at istiod {self.streams()} streams")

    def streams(self):
        """How many clients istiod has."""
        return sum(int(float(found)) for found in re.findall(r"^pilot_xds\{.*\} (\S+)$", self.controller.page(15014, "/metrics"), re.M))

    def proxyless(self):
        """A program with the manual's bootstrap, and the same with istiod's address in it."""
        backend = Process("backend", [self.peers, "backend", "one"], self.cluster.logs, {"INTEROP_ADDRESS": HOST})
        port = json.loads(backend.wait_for("the backend listens", lambda line: "grpc" in line))["grpc"]
        for number in range(len(TARGETS)):
            self.cluster.apply(*service(f"grpc-{number}", "grpc", 80, port))
        text = (CONFIG / "kubernetes/istio/proxyless.yaml").read_text()
        direct = text.replace(f"relay-distributary.{HOME}.svc.cluster.local", "istiod.istio-system.svc").replace("secretName: distributary-tls", "secretName: mesh-root")
        self.cluster.kubectl("create", "secret", "generic", "mesh-root", "--namespace", HOME, f"--from-literal=ca.crt={self.root}")
        before = self.streams()
        for way, file in (("direct", direct), ("through the relay", text)):
            self.cluster.apply(file)
            program = Pod(self.cluster, self.cluster.get(f"/apis/apps/v1/namespaces/{HOME}/deployments/program"), self.programs, ("client", *TARGETS))
            answers = lambda: [json.loads(line) for line in list(program.lines)]
            reached = lambda: {one["target"] for one in answers() if one.get("backend")}
            eventually("all targets are reached", lambda: program.must_live() and len(reached()) == len(TARGETS), 60)
            time.sleep(3)
            counts, more = Counter("failed" if one.get("error") else "passed" for one in answers()), self.streams() - before
            print(f"    proxyless, {way}: {len(TARGETS)} targets, {more} more streams at istiod, {counts['passed']} calls, {counts['failed']} failed", flush=True)
            if counts["failed"] or more != (len(TARGETS) if way == "direct" else 1):
                raise Failed(f"{way}: {more} streams, {counts}: {[one for one in answers() if one.get('error')][:2]}")
            program.gone(5.0)
            eventually("its streams end", lambda: self.streams() <= before + 1, 60)
        backend.stop()

    def root_replaced(self):
        """istiod starts with a new authority, so all that it has signed is worthless; the kubelet brings the new root."""
        self.cluster.kubectl("delete", "secret", "istio-ca-secret", "--namespace", SYSTEM)
        self.run_controller()
        self.root = self.mesh_root(self.root)
        self.refresh()
        self.changed(60)
        self.at("the relay")
        self.step("istiod started anew, with a new root and certificate")

    def token_refused(self):
        """The service account is deleted and istiod starts anew: the API server refuses the tokens that were given for it. It comes back."""
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": HOME, "namespace": HOME}}
        self.cluster.kubectl("delete", "serviceaccount", HOME, "--namespace", HOME)
        time.sleep(12)  # For ten seconds the API server remembers that it accepted a token.
        self.run_controller()
        said = lambda: [line for relay in self.relays for line in relay.log.read_text().splitlines()[-5:] if "Unauthenticated" in line or "authentication" in line]
        refused = eventually("istiod refuses the relay", said, 60)[-1]
        self.step("the API server refuses the relay's token")
        print(f"      {refused[:400]}", flush=True)
        self.cluster.apply(account)
        self.refresh()
        self.changed(120)
        self.step("it has a new one")

    def way_back(self):
        self.turn(self.server)
        self.rolled_out("istiod")
        self.leave_relay()
        self.step("the way back")

    def route(self, version):
        return networking("VirtualService", "shop", {"hosts": [SHOP], "gateways": [HOME], "http": [{
            "headers": {"request": {"set": {"version": str(version)}}},
            "route": [{"destination": {"host": "shop.default.svc.cluster.local", "port": {"number": BACKEND}}}]}]})


def networking(kind, name, spec):
    return {"apiVersion": "networking.istio.io/v1", "kind": kind, "metadata": {"name": name, "namespace": HOME}, "spec": spec}


def gateways(server, port, root):
    """Envoys with Istio's form of ids, which send the pod's token as the agent beside each gateway would."""
    grpc = {"initial_metadata": [{"key": "authorization", "value": "Bearer TOKEN"}], "envoy_grpc": {"cluster_name": "xds-grpc"}}
    source = {"ads": {}, "initial_fetch_timeout": "0s", "resource_api_version": "V3"}
    tls = {"@type": "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext", "sni": server,
           "common_tls_context": {"validation_context": {"trusted_ca": {"filename": root}}}}
    options = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
    http = {"@type": f"type.googleapis.com/{options}", "explicit_http_config": {"http2_protocol_options": {}}}
    bootstrap = {
        "node": {"metadata": {"NAMESPACE": HOME, "LABELS": {"istio": HOME, "app": HOME}, "ISTIO_VERSION": "1.31.0", "CLUSTER_ID": "Kubernetes"}},
        "admin": {"address": {"socket_address": {"address": "127.0.0.1", "port_value": 19000}}},
        "static_resources": {"clusters": [{
            "name": "xds-grpc", "type": "STRICT_DNS", "connect_timeout": "5s", "typed_extension_protocol_options": {options: http},
            "transport_socket": {"name": "tls", "typed_config": tls}, "load_assignment": {"cluster_name": "xds-grpc", "endpoints": [
                {"lb_endpoints": [{"endpoint": {"address": {"socket_address": {"address": server, "port_value": port}}}}]}]}}]},
        "dynamic_resources": {"lds_config": source, "cds_config": source, "ads_config": {
            "api_type": "DELTA_GRPC", "transport_api_version": "V3", "set_node_on_first_message_only": True, "grpc_services": [grpc]}}}
    yield {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "bootstrap", "namespace": HOME}, "data": {"envoy.json": json.dumps(bootstrap)}}
    labels = {"istio": HOME, "app": HOME}
    field = lambda name, path: {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}
    volumes = [
        {"name": "config", "emptyDir": {}}, {"name": "bootstrap", "configMap": {"name": "bootstrap"}},
        {"name": "token", "projected": {"sources": [{"serviceAccountToken": {"audience": "istio-ca", "path": "istio-token"}}]}},
        {"name": "mesh", "configMap": {"name": "istio-ca-root-cert"}}, {"name": "relay", "secret": {"secretName": "distributary-tls"}}]
    paths = ("/config", "/bootstrap", "/var/run/secrets/tokens", "/etc/mesh", "/etc/relay")
    yield {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "gateway", "namespace": HOME, "labels": labels}, "spec": {
        "selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": {
            "serviceAccountName": HOME, "volumes": volumes,
            "initContainers": [{"name": "token", "image": "any", "command": [
                "sh", "-c", "sed s/TOKEN/`cat /var/run/secrets/tokens/istio-token`/ /bootstrap/envoy.json >/config/envoy.json"]}],
            "containers": [{
                "name": "envoy", "image": "any", "env": [field("IP", "status.podIP"), field("NAME", "metadata.name")],
                "args": ["-c", "/config/envoy.json", "--service-cluster", HOME, "--service-node", f"router~$(IP)~$(NAME).{HOME}~{HOME}.svc.cluster.local"],
                "readinessProbe": {"tcpSocket": {"port": Istio.port}},
                "volumeMounts": [{"name": one["name"], "mountPath": path} for one, path in zip(volumes, paths)]}]}}}}
