# SPDX-License-Identifier: Apache-2.0
"""Two tenants and a gRPC client behind one relay with rules, in front of a control plane that sends the same to everybody."""

import urllib.request

from peers import resources as make
from peers.envoy import EVERY
from peers.process import Failed, eventually, free_port
from peers.traffic import ask
from scenario import scenario
from scenarios.grpc_traffic import service
from scenarios.tenants import TENANTS, resources

RELAY = "it is about the relay's rules"
RULES = """
rules:
  - {{ name: tenants, identities: 'ip:127.*', nodes: {{ id: 'red-*' }}, names: {red} }}
  - {{ name: others, identities: 'ip:127.*', nodes: {{ id: 'blue-*' }}, names: {blue} }}
  - {{ name: services, nodes: {{ id: 'grpc-*' }}, types: [lds, rds, cds, eds], names: 'shop*' }}
"""


class Ruled:
    """A relay whose rules change while it runs."""

    def __init__(self, world):
        self.world = world
        self.upstream = f"upstream: {{ xds_servers: [{{ server_uri: 'http://{world.control_plane.address}' }}] }}\n"
        world.start_relay(None, text=self.text("'red-*'", "'blue-*'"))

    def text(self, red, blue):
        return self.upstream + RULES.format(red=red, blue=blue)

    def change(self, red, blue):
        """Puts other rules into effect, as an operator does."""
        relay = self.world.relay
        relay.config.write_text(self.text(red, blue))
        order = urllib.request.Request(f"http://{relay.admin}/reload", method="POST")
        urllib.request.urlopen(order, timeout=5).close()


def shows(envoy, tenant):
    """Whether an Envoy has anything of a tenant."""
    dump = envoy.get("/config_dump?include_eds")
    return any(f'"{tenant}-{part}"' in dump for part in ("x", "web", "main"))


@scenario("S-01, S-04, S-06, S-07", EVERY, relay_only=RELAY)
def rules_of_tenants(world, dialect):
    """Nobody has what the rules do not give it, also after they have changed, and nothing that stays allowed is disturbed."""
    ports = {tenant: free_port() for tenant in TENANTS}
    for tenant, backend in TENANTS.items():
        world.control_plane.apply(put=resources(world, dialect, tenant, ports[tenant], backend))
    world.control_plane.apply(put=service("shop", world.backends.grpc["c"]))
    ruled = Ruled(world)
    envoys = {tenant: world.envoy(dialect, f"{tenant}-1").ready() for tenant in TENANTS}
    red, blue = (world.traffic(port=ports[tenant]) for tenant in TENANTS)
    calls = world.watch(world.grpc_go("xds:///shop").records["xds:///shop"])
    red.reaches("a")
    blue.reaches("b")
    calls.reaches("c")
    for mine, envoy in envoys.items():
        for tenant in TENANTS:
            if shows(envoy, tenant) != (tenant == mine) or shows(envoy, "shop"):
                raise Failed(f"{mine} sees {envoy.get('/listeners')!r} and {envoy.get('/clusters')!r}")
    # The red tenant may have a cluster of the blue one from now on; then its routes lead there.
    ruled.change("['red-*', 'blue-x']", "'blue-*'")
    eventually("the red tenant has the cluster", lambda: "blue-x" in envoys["red"].clusters())
    world.control_plane.apply(put=[make.routes("red-main", make.to("blue-x"))])
    red.reaches("b")
    # And then the blue tenant loses all that has to do with HTTP; nobody else notices.
    blue.stop()
    ruled.change("['red-*', 'blue-x']", "'blue-x'")
    blue_envoy = envoys["blue"]
    eventually("the blue listener is gone", lambda: "blue-web" not in blue_envoy.get("/listeners"))
    if not ask(ports["blue"])[1]:
        raise Failed("the blue listener still answers")
    world.control_plane.apply(put=[make.endpoints("blue-x", world.backends.http["c"])])
    red.reaches("c")
    calls.reaches("c")
