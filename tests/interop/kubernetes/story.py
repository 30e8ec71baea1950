# SPDX-License-Identifier: Apache-2.0
"""What the stories of control planes share: their Envoys go to the relay and back, whatever happens meanwhile. Requests never stop, and none may
fail. Knows nothing of any control plane."""

import re
import time

from applied import CHART, CONFIG, IMAGE, as_config
from cluster import HOST
from flow import Flow, ask, backend
from peers.process import Failed, eventually
from pods import Pod, workload

SHOP, BACKEND = "shop.example.com", 9001


class Story:
    """`parts` are played one after the other. A story says how its own pods come to be (`begin`), what its route is (`route`), and of which
    workload its proxies are (`written`)."""

    home, plane, port, story = "", "", 0, ""
    system = ""  # The namespace of the control plane, if it is another one.
    # The labels of the control plane's Deployment, and further arguments for it.
    labels, more = {}, ()
    # The words for curl that lead to a proxy's admin address, and what its bootstrap calls its control planes.
    admin, known_as = (), ()
    parts = ()

    def __init__(self, cluster, options, programs):
        self.cluster, self.version = cluster, 0
        self.programs = {"distributary": options.relay, "envoy": options.envoy, **programs}
        self.controller, self.relays, self.proxies, self.flow = None, [], [], None

    def play(self):
        self.begin()
        for part in self.parts:
            getattr(self, part)()
        self.flow.end()
        if not self.flow.counts["asked"] or self.flow.wrong:
            raise Failed(f"{len(self.flow.wrong)} of {self.flow.counts['asked']} requests failed: {self.flow.wrong[:5]}")

    def step(self, what):
        ways = [self.way(proxy) for proxy in self.proxies]
        print(f"    {what}: {self.flow.counts['asked']} requests so far, {len(self.flow.wrong)} failed; proxies at {', '.join(ways)}", flush=True)

    def set_out(self):
        """The application, its first proxies, and the requests."""
        backend(HOST, BACKEND)
        self.cluster.apply(*service("shop", "http", BACKEND, BACKEND), self.route(0))
        self.run_proxies()
        self.flow = Flow(lambda: [proxy.address for proxy in self.proxies if proxy.serves], self.port, SHOP)
        eventually("the proxies route", lambda: all(ask(proxy.address, self.port, SHOP) == "0" for proxy in self.proxies), 60)
        self.flow.wanted = {"0"}
        self.changed()
        self.step("as it was")

    def install_relay(self, *more):
        """As the story's file says."""
        story = CONFIG / f"{self.story}.yaml"
        self.relayed = ("--namespace", self.home, "--values", CONFIG / "kubernetes/values" / story.name, "--values", "-", *IMAGE, *more)
        self.cluster.helm("install", "relay", CHART, *self.relayed, given=as_config(story.read_text()))
        self.run_relays()

    def relay_upgraded(self):
        self.cluster.helm("upgrade", "relay", CHART, *self.relayed, "--set", "annotations.upgraded=yes",
                          given=as_config((CONFIG / f"{self.story}.yaml").read_text()))
        self.run_relays()
        self.at("the relay")
        self.changed()
        self.step("the relay was upgraded")

    def leave_relay(self):
        """The end of the way back, when nobody is at the relay any more."""
        self.cluster.helm("uninstall", "relay", "--namespace", self.home)
        for relay in self.relays:
            relay.end()
        self.changed()

    def run_controller(self):
        """The pod of the control plane's Deployment; the one before it ends first, as both would want the lease."""
        if self.controller:
            self.controller.end()
        self.controller = Pod(self.cluster, workload(self.cluster, self.system or self.home, **self.labels), self.programs, self.more).ready()

    def run_job(self, job, *more):
        """Runs the pod of a job to its end."""
        pod = Pod(self.cluster, job, self.programs, more)
        eventually(f"{pod.name} ends", lambda: not pod.alive(), 60)
        if pod.child.returncode:
            raise Failed(f"{pod.name}: {pod.log.read_text()[-500:]}")
        pod.gone(1.0)

    def refresh(self):
        """What the kubelet does: it brings new files into all pods."""
        for pod in [self.controller, *self.relays, *self.proxies]:
            pod.refresh()

    def run_relays(self):
        """Two pods of the relay's Deployment, each ready before an old one goes, as its strategy says."""
        found = workload(self.cluster, self.home, **{"app.kubernetes.io/name": "distributary"})
        old, self.relays = self.relays, []
        for number in range(2):
            self.relays.append(Pod(self.cluster, found, self.programs).ready())
            if old:
                old.pop(0).end()

    def run_proxies(self):
        """Two pods of the proxies' workload, each ready before an old one goes."""
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

    def rolled_out(self, where):
        """New proxies are there, and follow."""
        self.run_proxies()
        self.at(where)
        self.changed()

    def way(self, proxy):
        """To whom a proxy has its connection."""
        active = rf"^(?:{'|'.join(self.known_as)})::([0-9.]+):\d+::cx_active::[1-9]"
        found = re.findall(active, proxy.inside("curl", "-s", *self.admin, "http://127.0.0.1:19000/clusters"), re.M)
        names = {pod.address: "the relay" for pod in self.relays} | {self.controller.address: self.plane}
        return names.get(found[0], found[0]) if len(found) == 1 else f"{found}"

    def at(self, where, within=30):
        eventually(f"all proxies are at {where}", lambda: all(self.way(proxy) == where for proxy in self.proxies), within)

    def changed(self, within=30):
        """A change of the route reaches every proxy; meanwhile the old answer is right as well."""
        self.version += 1
        self.flow.wanted = self.flow.wanted | {str(self.version)}
        self.cluster.apply(self.route(self.version))
        eventually(f"version {self.version} is at every proxy", lambda: all(
            ask(proxy.address, self.port, SHOP) == str(self.version) for proxy in self.proxies), within)
        self.flow.wanted = {str(self.version)}


def service(name, protocol, port, target):
    """A Service, whose endpoint is here."""
    yield {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": "default"},
           "spec": {"ports": [{"name": protocol, "port": port, "targetPort": target}]}}
    yield {"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
           "metadata": {"name": f"{name}-1", "namespace": "default", "labels": {"kubernetes.io/service-name": name}},
           "ports": [{"port": target, "protocol": "TCP", "name": protocol}],
           "endpoints": [{"addresses": [HOST], "conditions": {"ready": True}}]}
