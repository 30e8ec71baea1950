# SPDX-License-Identifier: Apache-2.0
"""Relays are drained and replaced, one after the other, and nobody notices."""

from collections import Counter

from peers import resources as make
from peers.envoy import AGGREGATED
from peers.process import Failed, eventually
from peers.resources import TYPES
from peers.subscribers import Subscribers
from scenario import scenario
from scenarios.envoy_http import single_cluster

CLIENTS = 300
CLUSTERS = 20
RELAYS = 3


@scenario("K-26, C-13, C-14, B-26, K-13, G-20", caches=("linear",), relay_only="it is about the relay")
def relays_are_replaced(world):
    """Each of three relays is drained and replaced by an empty one, under 300 clients and two Envoys: no request fails, and no
    client is sent again what it has, apart from endpoints."""
    many = [f"many-{number}" for number in range(CLUSTERS)]
    world.control_plane.apply(put=[
        *single_cluster(world, AGGREGATED[0], "a"),
        *(part for name in many for part in (make.cluster(name), make.endpoints(name, world.backends.http["c"]))),
    ])
    text = (f"upstream: {{ xds_servers: [{{ server_uri: 'http://{world.control_plane.address}' }}] }}\n"
            f"timers: {{ drain_announce: 1s, drain: 5s }}\n")
    relays = [world.start_relay(None, text=text) for _ in range(RELAYS)]
    addresses = world.xds = [relay.address for relay in relays]
    # Both listen at the same port; the system divides the connections between them.
    envoys = [world.envoy(dialect, node=dialect.name).ready() for dialect in AGGREGATED]
    clients = Subscribers(world.programs.go, world.logs, CLIENTS, CLUSTERS, addresses)
    eventually("all clients have everything", lambda: clients.settled(addresses), within=40)
    traffic = world.traffic()
    traffic.reaches("a")
    for at, relay in enumerate(relays):
        relay.drain()
        others = [address for address in addresses if address != relay.address]
        eventually("all clients have moved", lambda: clients.settled(others), within=40)
        relays[at] = world.start_relay(None, address=relay.address, text=text)
    resent(clients)

    start, backend = len(clients.lines), "b"
    world.control_plane.apply(put=[make.endpoints(name, world.backends.http[backend]) for name in ("x", many[0])])
    traffic.reaches(backend)
    eventually("every client has a change", lambda: clients.have_had("eds", many[0], start))
    world.unbroken()
    for envoy in envoys:
        if not envoy.stat("http.interop.downstream_rq_2xx"):
            raise Failed(f"{envoy.name} had no traffic")


@scenario("G-19, K-26, G-20", caches=("linear",), relay_only="it is about the relay")
def relays_are_replaced_in_an_outage(world):
    """The same while the control plane is away, with relays that have no disk: each new one begins with what its neighbours know. The
    Envoys that were there have no failed request, and each that starts at the new relay has everything at once."""
    world.control_plane.apply(put=single_cluster(world, AGGREGATED[0], "a"))
    text = (f"upstream: {{ xds_servers: [{{ server_uri: 'http://{world.control_plane.address}' }}] }}\n"
            f"timers: {{ drain_announce: 1s, drain: 5s }}\n")
    relays = [world.start_relay(None, text=text) for _ in range(RELAYS)]
    for relay in relays:
        # Each has been asked by somebody, and so knows everything.
        world.xds = relay.address
        world.envoy(AGGREGATED[1], node=f"at-{relay.name}").ready().stop()
    world.xds = [relay.address for relay in relays]
    for dialect in AGGREGATED:
        world.envoy(dialect, node=dialect.name).ready()
    traffic = world.traffic()
    traffic.reaches("a")
    world.control_plane.stop()
    for at, relay in enumerate(relays):
        neighbours = ", ".join(f"'http://{other.admin}'" for other in relays if other is not relay)
        relay.drain()
        new = relays[at] = world.start_relay(None, address=relay.address, text=f"{text}snapshot: {{ from: [{neighbours}] }}\n")
        for dialect in AGGREGATED:
            envoy = world.envoy(dialect, node=f"{dialect.name}-{at}").ready()
            for what in ("cluster_manager.cds", "listener_manager.lds", "cluster.x", "http.interop.rds.main"):
                if envoy.stat(f"{what}.init_fetch_timeout") or not envoy.stat(f"{what}.update_success"):
                    raise Failed(f"{envoy.name} has waited for {what} in vain")
        if waiting := [line for line in new.page("/metrics").splitlines() if line.startswith("distributary_unanswered_total") and not line.endswith(" 0")]:
            raise Failed(f"{new.name} has kept clients waiting: {waiting}")
    traffic.reaches("a")
    world.unbroken()


def resent(clients):
    """Fails if a client that came to another relay was sent more than it must get."""
    moved = {place: lines for place, lines in clients.streams().items() if place[1] > 1}
    if len({client for client, _ in moved}) != CLIENTS:
        raise Failed("some clients never moved")
    for (client, stream), lines in moved.items():
        who = f"client {client}, stream {stream}"
        if gone := [line["removed"] for line in lines if line.get("removed")]:
            raise Failed(f"{who}: told that these do not exist: {gone}")
        endpoints = Counter(name for line in lines if line["type"] == TYPES["eds"] for name in line.get("names", ()))
        others = Counter(line["type"] for line in lines if line["type"] != TYPES["eds"])
        if lines[0]["delta"]:
            # C-13, C-14: of what it holds only endpoints come, once.
            if again := [line["again"] for line in lines if line.get("again") and line["type"] != TYPES["eds"]]:
                raise Failed(f"{who}: sent again what it has: {again}")
            if max(endpoints.values()) > 1:
                raise Failed(f"{who}: endpoints more than once: {endpoints}")
        # B-26, K-13: one answer for each type, and endpoints once more after the clusters.
        elif max(others.values()) > 1 or max(endpoints.values()) > 2:
            raise Failed(f"{who}: {others}, endpoints {endpoints}")
