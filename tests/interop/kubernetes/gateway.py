"""Envoy Gateway with its Kubernetes provider: its proxies go to the relay and back, while the relay and Envoy Gateway are upgraded, its
certificates are replaced and all relays die. Requests never stop, and none may fail."""

import json
import re
import time
from concurrent.futures import ThreadPoolExecutor

from applied import CHART, CONFIG, IMAGE, as_config
from cluster import HOST
from flow import Flow, ask, backend
from peers.process import Failed, eventually
from pods import Pod, deployment

HOME = "envoy-gateway-system"
CLASS, SHOP = "eg", "shop.example.com"
PORT, ADMIN, BACKEND = 10080, 19000, 9001  # Envoy Gateway adds 10,000 to a port that is for administrators.
STORY = CONFIG / "kubernetes" / "envoy-gateway"


class Gateway:
    """`step` prints what was seen after each part."""

    def __init__(self, cluster, options):
        self.cluster, self.options, self.version = cluster, options, 0
        self.controller, self.relays, self.proxies = None, [], []
        self.programs = {"distributary": options.relay, "envoy-gateway": options.gateway, "envoy-gateway-certgen": options.gateway,
                         "envoy": options.envoy}
        self.flow = None

    def play(self):
        self.begin()
        for part in (self.way_in, self.relay_upgraded, self.gateway_upgraded, self.certificates_replaced, self.relays_lost, self.way_back):
            part()
        self.flow.end()
        if not self.flow.counts["asked"] or self.flow.wrong:
            raise Failed(f"{len(self.flow.wrong)} of {self.flow.counts['asked']} requests failed: {self.flow.wrong[:5]}")

    def step(self, what):
        ways = [self.way(proxy) for proxy in self.proxies]
        print(f"    {what}: {self.flow.counts['asked']} requests so far, {len(self.flow.wrong)} failed; proxies at {', '.join(ways)}", flush=True)

    # The pods.

    def install(self, *more):
        """As its manual says, its hooks included: one is a job, which makes the certificates."""
        command = ("upgrade", "--install", "eg", self.options.charts / "gateway-helm", "--namespace", HOME, "--create-namespace",
                   "--set", "crds.enabled=false", *more)
        with ThreadPoolExecutor() as beside:
            installed = beside.submit(self.cluster.helm, *command)
            job = eventually("the job of the release begins", lambda: installed.done() or self.job(), 60)
            if job is not True:
                self.certify(job)
                self.complete(job)
            installed.result()

    def job(self):
        jobs = self.cluster.ask(f"/apis/batch/v1/namespaces/{HOME}/jobs")["items"]
        return next((one for one in jobs if "completionTime" not in one.get("status", {})), None)

    def certify(self, job, *more):
        """Runs the pod of a job to its end."""
        pod = Pod(self.cluster, job, self.programs, more)
        eventually("the certificates are made", lambda: not pod.alive(), 60)
        if pod.child.returncode:
            raise Failed(f"{pod.name}: {pod.log.read_text()[-500:]}")
        pod.gone(1.0)
        self.made = job

    def complete(self, job):
        """Notes what a controller of jobs would."""
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        conditions = [{"type": kind, "status": "True", "lastProbeTime": now, "lastTransitionTime": now} for kind in ("SuccessCriteriaMet", "Complete")]
        status = {"status": {"startTime": now, "completionTime": now, "succeeded": 1, "conditions": conditions}}
        self.cluster.kubectl("patch", "job", job["metadata"]["name"], "--namespace", HOME, "--subresource=status", "--type=merge", "-p", json.dumps(status))

    def run_controller(self):
        """The pod of Envoy Gateway's Deployment; the one before it ends first, as both would want the lease."""
        if self.controller:
            self.controller.end()
        found = deployment(self.cluster, HOME, **{"control-plane": "envoy-gateway"})
        self.controller = Pod(self.cluster, found, self.programs).ready()

    def run_relays(self):
        """Two pods of the relay's Deployment, each ready before an old one goes, as its strategy says."""
        found = deployment(self.cluster, HOME, **{"app.kubernetes.io/name": "distributary"})
        old, self.relays = self.relays, []
        for number in range(2):
            self.relays.append(Pod(self.cluster, found, self.programs).ready())
            if old:
                old.pop(0).end()

    def run_proxies(self):
        """Two pods of the Deployment that Envoy Gateway wrote, each ready before an old one goes."""
        found = self.written()
        old, self.proxies = self.proxies, list(self.proxies)
        for number in range(2):
            new = Pod(self.cluster, found, self.programs, ("--disable-hot-restart", "--concurrency", "1"))
            self.proxies.append(new.ready())
            if old:
                gone = self.proxies.pop(0)
                gone.serves = False
                time.sleep(1)  # Requests that are under way.
                gone.gone(10.0)

    def written(self):
        return eventually("Envoy Gateway writes its proxies' Deployment", lambda: deployment(
            self.cluster, HOME, **{"gateway.envoyproxy.io/owning-gateway-name": "shop"}), 60)

    def way(self, proxy):
        """To whom a proxy has its stream."""
        clusters = proxy.inside("python3", "-c", f"import urllib.request as u; print(u.urlopen('http://127.0.0.1:{ADMIN}/clusters').read().decode())")
        active = [(found[1], found[2]) for found in re.finditer(r"^(relay|envoy_gateway|xds_cluster)::([0-9.]+):\d+::cx_active::[1-9]", clusters, re.M)]
        names = {"relay": "the relay", "envoy_gateway": "Envoy Gateway", "xds_cluster": "Envoy Gateway"}
        return names[active[0][0]] if len(active) == 1 else f"{active}"

    def at(self, where, within=30):
        eventually(f"all proxies are at {where}", lambda: all(self.way(proxy) == where for proxy in self.proxies), within)

    def changed(self, within=30):
        """A change of the route reaches every proxy; meanwhile the old answer is right as well."""
        self.version += 1
        self.flow.wanted = self.flow.wanted | {str(self.version)}
        self.cluster.apply(route(self.version))
        eventually(f"version {self.version} is at every proxy", lambda: all(
            ask(proxy.address, PORT, SHOP) == str(self.version) for proxy in self.proxies), within)
        self.flow.wanted = {str(self.version)}

    # The story.

    def begin(self):
        self.install()
        self.run_controller()
        backend(HOST, BACKEND)
        self.cluster.apply(*application(), route(0))
        self.run_proxies()
        self.flow = Flow(lambda: [proxy.address for proxy in self.proxies if proxy.serves], PORT, SHOP)
        eventually("the proxies route", lambda: all(ask(proxy.address, PORT, SHOP) == "0" for proxy in self.proxies), 60)
        self.flow.wanted = {"0"}
        self.changed()
        self.service = self.cluster.get(f"/api/v1/namespaces/{HOME}/services/envoy-gateway")["spec"]
        self.step("as it was")

    def way_in(self):
        """The manual's three commands."""
        story = as_config((CONFIG / "envoy-gateway.yaml").read_text())
        self.relayed = ("--values", CONFIG / "kubernetes/values/envoy-gateway.yaml", "--values", "-", *IMAGE)
        self.cluster.helm("install", "relay", CHART, "--namespace", HOME, *self.relayed, given=story)
        self.story = story
        self.run_relays()
        before = self.written()["metadata"]["generation"]
        self.cluster.apply((STORY / "proxies.yaml").read_text())
        self.cluster.kubectl("patch", "gatewayclass", CLASS, "--type=merge", "-p", json.dumps({"spec": {"parametersRef": {
            "group": "gateway.envoyproxy.io", "kind": "EnvoyProxy", "name": "relayed", "namespace": HOME}}}))
        eventually("Envoy Gateway writes the bootstrap anew", lambda: self.written()["metadata"]["generation"] > before, 30)
        self.run_proxies()
        self.at("the relay")
        self.changed()
        streams = [relay.inside("distributary", "status", "--servers") for relay in self.relays]
        (self.cluster.logs / "relays.status").write_text("\n".join(streams))
        self.step("the way in")

    def relay_upgraded(self):
        self.cluster.helm("upgrade", "relay", CHART, "--namespace", HOME, *self.relayed, "--set", "annotations.upgraded=yes", given=self.story)
        self.run_relays()
        self.at("the relay")
        self.changed()
        self.step("the relay was upgraded")

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
        self.certify(self.made, "--overwrite")
        for pod in [self.controller, *self.relays, *self.proxies]:
            pod.refresh()
        self.changed()
        self.run_proxies()
        self.at("the relay")
        self.changed()
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
        eventually("Envoy Gateway writes the bootstrap anew", lambda: self.written()["metadata"]["generation"] > before, 30)
        self.run_proxies()
        self.at("Envoy Gateway")
        self.cluster.kubectl("delete", "-f", STORY / "proxies.yaml")
        self.cluster.helm("uninstall", "relay", "--namespace", HOME)
        for relay in self.relays:
            relay.end()
        self.changed()
        self.step("the way back")


def application():
    """A Gateway and a Service, whose endpoint is here."""
    kind = "gateway.networking.k8s.io/v1"
    yield {"apiVersion": kind, "kind": "GatewayClass", "metadata": {"name": CLASS},
           "spec": {"controllerName": "gateway.envoyproxy.io/gatewayclass-controller"}}
    yield {"apiVersion": kind, "kind": "Gateway", "metadata": {"name": "shop", "namespace": "default"},
           "spec": {"gatewayClassName": CLASS, "listeners": [{"name": "web", "protocol": "HTTP", "port": 80}]}}
    yield {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "shop", "namespace": "default"}, "spec": {"ports": [{"port": BACKEND}]}}
    yield {"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
           "metadata": {"name": "shop-1", "namespace": "default", "labels": {"kubernetes.io/service-name": "shop"}},
           "ports": [{"port": BACKEND, "protocol": "TCP", "name": ""}], "endpoints": [{"addresses": [HOST], "conditions": {"ready": True}}]}


def route(version):
    return {"apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute", "metadata": {"name": "shop", "namespace": "default"},
            "spec": {"parentRefs": [{"name": "shop"}], "hostnames": [SHOP], "rules": [{
                "filters": [{"type": "RequestHeaderModifier", "requestHeaderModifier": {"set": [{"name": "version", "value": str(version)}]}}],
                "backendRefs": [{"name": "shop", "port": BACKEND}]}]}}
