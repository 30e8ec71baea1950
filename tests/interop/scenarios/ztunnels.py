# SPDX-License-Identifier: Apache-2.0
"""A thousand ztunnels from one stream of a control plane."""

from peers.ambient import ADDRESS, POLICY, Ambient, Ztunnels
from peers.process import Failed, eventually
from scenario import scenario
from scenarios.sidecar import streams

CLIENTS = 1000
WORKLOADS = 100
# The class that config/istio.yaml names, and the node that istiod then sees.
CLASS = """
classes:
  - match: { id: "ztunnel~*" }
    key: [metadata.NAMESPACE]
    node: { id: "ztunnel~0.0.0.0~ztunnel.{metadata.NAMESPACE}~{metadata.NAMESPACE}.svc.cluster.local" }
"""
NODE = "ztunnel~0.0.0.0~ztunnel.istio-system~istio-system.svc.cluster.local"
UID = "cluster//Pod/shop/workload-{}".format


def each_gets(ztunnels, start, **wanted):
    """Waits until each client was sent exactly this since then, in one response."""
    eventually(f"each ztunnel is sent {wanted}", lambda: len(ztunnels.brought(start, ADDRESS)) >= ztunnels.count, within=60)
    for line in ztunnels.brought(start, ADDRESS):
        if {key: line[key] for key in wanted} != wanted:
            raise Failed(f"a ztunnel was sent {line}, not {wanted}")


def one_stream(plane):
    """At any moment the control plane had one stream, of the class's node."""
    if (most := streams(plane)) != 1:
        raise Failed(f"{most} streams at the control plane")
    with plane.news:
        nodes = {line["node"] for line in plane.lines if line.get("node")}
    if nodes != {NODE}:
        raise Failed(f"the control plane saw {nodes}")


@scenario("A-09, B-10, C-12, C-13", caches=("linear",), relay_only="it is about the relay")
def a_thousand_ztunnels(world):
    """They start, a workload changes, another one goes, and the relay is replaced while a third one changes: each is sent that and no
    more, and the control plane has one stream."""
    plane = Ambient(world.programs.go, world.logs, WORKLOADS)
    text = f"upstream: {{ xds_servers: [{{ server_uri: 'http://{plane.address}' }}] }}\n{CLASS}"
    relay = world.start_relay(None, text=text)
    ztunnels = Ztunnels(world.programs.go, world.logs, CLIENTS, relay.address)
    eventually("each has everything", lambda: ztunnels.have(ADDRESS, 2 * WORKLOADS) and ztunnels.have(POLICY, WORKLOADS), within=120)
    one_stream(plane)

    start = len(ztunnels.brought())
    plane.change(put=UID(1), number=5000)
    each_gets(ztunnels, start, put=1, again=0, removed=0)
    start = len(ztunnels.brought())
    plane.change(remove=UID(2))
    each_gets(ztunnels, start, put=0, again=0, removed=1)

    start, address = len(ztunnels.brought()), relay.address
    relay.kill()
    plane.change(put=UID(3), number=6000)
    world.start_relay(None, address=address, text=text)
    each_gets(ztunnels, start, put=1, again=0, removed=0)
    if not ztunnels.have(ADDRESS, 2 * WORKLOADS - 1):
        raise Failed("a ztunnel lacks something")
    one_stream(plane)
