# SPDX-License-Identifier: Apache-2.0
"""Envoy Gateway with its Kubernetes provider: its proxies go to the relay and back, while the relay and Envoy Gateway are upgraded, its
certificates are replaced and all relays die."""

import json
import time
from concurrent.futures import ThreadPoolExecutor

from applied import CONFIG
from peers.process import Failed, eventually
from pods import workload
from story import BACKEND, SHOP, Story

HOME = "envoy-gateway-system"
CLASS = "eg"
STORY = CONFIG / "kubernetes" / "envoy-gateway"


class Gateway(Story):
    home, plane, story = HOME, "Envoy Gateway", "envoy-gateway"
    labels = {"control-plane": "envoy-gateway"}
    port = 10080  # Envoy Gateway adds 10,000 to a port that is for administrators.
    known_as = ("relay", "envoy_gateway", "xds_cluster")
    parts = ("way_in", "relay_upgraded", "gateway_upgraded", "certificates_replaced", "relays_lost", "way_back")

    def __init__(self, cluster, options):
        super().__init__(cluster, options, {"envoy-gateway": options.gateway, "envoy-gateway-certgen": options.gateway})
        self.charts = options.charts

    # The pods.

    def install(self, *more):
        """As its manual says, its hooks included: one is a job, which makes the certificates."""
        command = ("upgrade", "--install", "eg", self.charts / "gateway-helm", "--namespace", HOME, "--create-namespace",
                   "--set", "crds.enabled=false", *more)
        with ThreadPoolExecutor() as beside:
            installed = beside.submit(self.cluster.helm, *command)
            job = eventually("the job of the release begins", lambda: installed.done() or self.job(), 60)
            if job is not True:
                self.made = job
                self.run_job(job)
                self.complete(job)
            installed.result()

    def job(self):
        jobs = self.cluster.ask(f"/apis/batch/v1/namespaces/{HOME}/jobs")["items"]
        return next((one for one in jobs if "completionTime" not in one.get("status", {})), None)

    def complete(self, job):
        """Notes what a controller of jobs would."""
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        conditions = [{"type": kind, "status": "True", "lastProbeTime": now, "lastTransitionTime": now} for kind in ("SuccessCriteriaMet", "Complete")]
        status = {"status": {"startTime": now, "completionTime": now, "succeeded": 1, "conditions": conditions}}
        self.cluster.kubectl("patch", "job", job["metadata"]["name"], "--namespace", HOME, "--subresource=status", "--type=merge", "-p", json.dumps(status))

    def written(self):
        return eventually("Envoy Gateway writes its proxies' Deployment", lambda: workload(
            self.cluster, HOME, **{"gateway.envoyproxy.io/owning-gateway-name": "shop"}), 60)

    def written_anew(self, before):
        eventually("Envoy Gateway writes the bootstrap anew", lambda: self.written()["metadata"]["generation"] > before, 30)

    # The story.

    def begin(self):
        self.install()
        self.run_controller()
        self.cluster.apply(*gateway())
        self.set_out()
        self.service = self.cluster.get(f"/api/v1/namespaces/{HOME}/services/envoy-gateway")["spec"]

    def way_in(self):
        """The manual's three commands."""
        self.install_relay()
        before = self.written()["metadata"]["generation"]
        self.cluster.apply((STORY / "proxies.yaml").read_text())
        self.cluster.kubectl("patch", "gatewayclass", CLASS, "--type=merge", "-p", json.dumps({"spec": {"parametersRef": {
            "group": "gateway.envoyproxy.io", "kind": "EnvoyProxy", "name": "relayed", "namespace": HOME}}}))
        self.written_anew(before)
        self.rolled_out("the relay")
        streams = [relay.inside("distributary", "status", "--servers") for relay in self.relays]
        (self.cluster.logs / "relays.status").write_text("\n".join(streams))
        self.step("the way in")

    def gateway_upgraded(self):
        """Nothing of what leads proxies to the relay is Envoy Gateway's release's, so nothing is put back."""
        before = self.written()["metadata"]["generation"]
        server = "config.envoyGateway.xdsServer"
        self.install("--set", "deployment.annotations.upgraded=yes", "--set", f"{server}.maxConnectionAge=20s", "--set", f"{server}.maxConnectionAgeGrace=5s")
        self.run_controller()
        self.changed(60)
        if self.cluster.get(f"/api/v1/namespaces/{HOME}/services/envoy-gateway")["spec"] != self.service:
            raise Failed("the Service of Envoy Gateway has changed")
        if self.written()["metadata"]["generation"] != before:
            raise Failed("Envoy Gateway wrote other proxies")
        self.at("the relay")
        self.step("Envoy Gateway was upgraded")

    def certificates_replaced(self):
        """All of them, and who signs them; the kubelet brings the new files, and one proxy comes anew."""
        self.run_job(self.made, "--overwrite")
        self.refresh()
        self.changed()
        self.rolled_out("the relay")
        self.step("the certificates were replaced")

    def relays_lost(self):
        for relay in self.relays:
            relay.kill()
        self.relays, killed = [], time.monotonic()
        self.at("Envoy Gateway")
        took = time.monotonic() - killed
        self.changed()
        self.step(f"all relays were killed, and {took:.0f} s later")
        self.run_relays()
        began = time.monotonic()
        self.at("the relay", 60)
        took = time.monotonic() - began
        self.changed()
        self.step(f"relays are back, and {took:.0f} s later, as Envoy Gateway ends streams after 20 s")

    def way_back(self):
        before = self.written()["metadata"]["generation"]
        self.cluster.kubectl("patch", "gatewayclass", CLASS, "--type=json", "-p", '[{"op": "remove", "path": "/spec/parametersRef"}]')
        self.written_anew(before)
        self.rolled_out("Envoy Gateway")
        self.cluster.kubectl("delete", "-f", STORY / "proxies.yaml")
        self.leave_relay()
        self.step("the way back")

    def route(self, version):
        return {"apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute", "metadata": {"name": "shop", "namespace": "default"},
                "spec": {"parentRefs": [{"name": "shop"}], "hostnames": [SHOP], "rules": [{
                    "filters": [{"type": "RequestHeaderModifier", "requestHeaderModifier": {"set": [{"name": "version", "value": str(version)}]}}],
                    "backendRefs": [{"name": "shop", "port": BACKEND}]}]}}


def gateway():
    kind = "gateway.networking.k8s.io/v1"
    yield {"apiVersion": kind, "kind": "GatewayClass", "metadata": {"name": CLASS},
           "spec": {"controllerName": "gateway.envoyproxy.io/gatewayclass-controller"}}
    yield {"apiVersion": kind, "kind": "Gateway", "metadata": {"name": "shop", "namespace": "default"},
           "spec": {"gatewayClassName": CLASS, "listeners": [{"name": "web", "protocol": "HTTP", "port": 80}]}}
