# SPDX-License-Identifier: Apache-2.0
"""Tenants behind one relay, in front of a control plane that keeps a snapshot for each node id: every node with an id gets
the snapshot of the first node with that id."""

from peers import resources as make
from peers.envoy import AGGREGATED, BACK_OFF
from peers.process import DEADLINE, Failed, free_port
from scenario import scenario

RELAY = "it is about the relay's views"
TENANTS = {"red": "a", "blue": "b"}
NODES = ("nodes",)


def resources(world, dialect, tenant, port, backend):
    """The resources of a tenant; every name begins with the tenant's name."""
    source, name = dialect.source(), f"{tenant}-x"
    return [make.cluster(name, source), make.endpoints(name, world.backends.http[backend]),
            make.routes(f"{tenant}-main", make.to(name)), make.listener(f"{tenant}-web", port, make.rds(f"{tenant}-main", source))]


class Tenants:
    """Two tenants with an Envoy each, and traffic through both."""

    def __init__(self, world, dialect, classes, about):
        self.world, self.dialect, self.about = world, dialect, about
        self.envoys = {}
        ports = {tenant: free_port() for tenant in TENANTS}
        for tenant, backend in TENANTS.items():
            world.control_plane.apply(put=resources(world, dialect, tenant, ports[tenant], backend), tenant=tenant)
        self.text = f"upstream: {{ xds_servers: [{{ server_uri: 'http://{world.control_plane.address}' }}] }}\nclasses:\n{classes}"
        world.start_relay(None, text=self.text)
        for tenant in TENANTS:
            self.join(tenant, f"{tenant}-1")
        self.apart()
        self.traffic = {tenant: world.traffic(port=ports[tenant]) for tenant in TENANTS}
        self.reach(**TENANTS)

    def join(self, tenant, node):
        self.envoys[node] = self.world.envoy(self.dialect, node, about=self.about(tenant)).ready()

    def reach(self, within=DEADLINE, **backends):
        for tenant, backend in backends.items():
            self.traffic[tenant].reaches(backend, within=within)

    def put(self, tenant, *resources):
        self.world.control_plane.apply(put=resources, tenant=tenant)

    def presented(self):
        """The ids under which the control plane knows the relay's views."""
        return {request["node"] for request in self.world.control_plane.requests() if "node" in request}

    def apart(self):
        """No tenant has resources of another, and no request of one was ever answered by another's backend."""
        for node, envoy in self.envoys.items():
            dump = envoy.get("/config_dump?include_eds")
            for tenant in TENANTS:
                mine = node.startswith(tenant)
                if mine != any(f'"{tenant}-{part}"' in dump for part in ("x", "y", "web", "main")):
                    raise Failed(f"{node} {'lacks' if mine else 'has'} resources of {tenant}: {envoy.get('/listeners')!r}")

    def changes(self):
        """Each tenant's changes reach only that tenant, also after a restart of the relay, and for later clients. Returns the ids
        that were presented before the restart."""
        world, http, source = self.world, self.world.backends.http, self.dialect.source()
        self.put("red", make.endpoints("red-x", http["c"]))
        self.reach(red="c", blue="b")
        self.put("blue", make.cluster("blue-y", source), make.endpoints("blue-y", http["a"]))
        self.put("blue", make.routes("blue-main", make.to("blue-y")))
        self.reach(red="c", blue="a")
        self.apart()
        before = self.presented()
        world.relay.drain()
        world.start_relay(None, text=self.text, address=world.relay.address)
        self.put("red", make.endpoints("red-x", http["b"]))
        self.reach(red="b", blue="a", within=BACK_OFF + DEADLINE)
        for tenant in TENANTS:
            self.join(tenant, f"{tenant}-2")
        self.apart()
        return before


@scenario("K-02, K-03, K-24, K-28", AGGREGATED, caches=NODES, relay_only=RELAY)
def tenants_by_cluster(world, dialect):
    """A class with a key and no template: its views present ids of their own, and clients of one tenant share."""
    tenants = Tenants(world, dialect, "  - key: [cluster]\n", lambda tenant: {"cluster": tenant})
    one_id_each(tenants, tenants.changes())


@scenario("K-02, K-03, K-24, K-28", AGGREGATED, caches=NODES, relay_only=RELAY)
def tenants_by_metadata(world, dialect):
    """Tenants of one cluster, told apart by their metadata."""
    tenants = Tenants(world, dialect, "  - key: [metadata.TENANT]\n", lambda tenant: {"metadata": {"TENANT": tenant}})
    one_id_each(tenants, tenants.changes())


def one_id_each(tenants, before):
    """There are as many ids as tenants, and a restart of the relay changes none."""
    if len(before) != len(TENANTS) or tenants.presented() != before:
        raise Failed(f"the relay presented {before}, and after its restart {tenants.presented()}")


@scenario("K-02, K-03, K-04, K-24, K-25, K-28", AGGREGATED, caches=NODES, relay_only=RELAY)
def every_client_as_it_is(world, dialect):
    """A view for each client, which presents the client's whole node: the control plane sees no difference to direct clients."""
    tenants = Tenants(world, dialect, "  - key: [id]\n    node: client\n", lambda tenant: {"metadata": {"TENANT": tenant}})
    tenants.changes()
    if tenants.presented() != set(tenants.envoys):
        raise Failed(f"the relay presented {tenants.presented()}, its clients are {set(tenants.envoys)}")
