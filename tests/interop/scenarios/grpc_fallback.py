# SPDX-License-Identifier: Apache-2.0
"""gRPC clients with several servers in their bootstrap, of which the first ones are relays without a control plane."""

import json
import time

from peers.process import Failed, eventually, free_port
from peers.relay import Relay
from scenario import scenario
from scenarios.grpc_traffic import service

RELAY = "it is about the relay"
TARGET = "xds:///shop"
# What a dead server may cost at most, and what a busy machine may cost once.
EACH, SLACK = 1.0, 1.0


def bootstrap(*addresses):
    """A gRPC bootstrap with these servers by priority."""
    servers = [{"server_uri": address, "channel_creds": [{"type": "insecure"}]} for address in addresses]
    return json.dumps({"node": {"id": "grpc", "cluster": "interop"}, "xds_servers": servers})


@scenario("G-18, G-03", caches=("linear",), relay_only=RELAY)
def control_plane_goes_before_the_cluster(world):
    """The relay has a client's listener and route when its control plane goes: the client gets the rest from its second server,
    before it could conclude that the cluster does not exist."""
    second = world.another_control_plane("second")
    for control_plane in (world.control_plane, second):
        control_plane.apply(put=service("shop", world.backends.grpc["b"]))
    relay = world.start_relay(world.control_plane.address)
    for kind, name in (("lds", "shop"), ("rds", "shop-routes")):
        relay.get(kind, name)
    world.control_plane.stop()
    gone = f'upstream_connected{{server="http://{world.control_plane.address}"}} 0'
    eventually("the relay has noticed", lambda: gone in relay.page("/metrics"))
    text = bootstrap(relay.address, second.address)
    for start in (world.grpc_python, world.grpc_go):
        began = time.monotonic()
        client = start(TARGET, text=text)
        world.watch(client.records[TARGET]).reaches("b", within=14)
        print(f"         fallback, {client.name}: the first answers after {time.monotonic() - began:.2f} s", flush=True)
        client.stop()


@scenario("G-18", caches=("linear",), relay_only=RELAY)
def dead_relays_before_a_good_one(world):
    """Three servers that are relays, of which the first ones have control planes that refuse connections: each of them delays a
    client by a second at most, compared with three control planes."""
    control_plane = world.another_control_plane("good")
    control_plane.apply(put=service("shop", world.backends.grpc["a"]))
    good = control_plane.address
    dead = [f"127.0.0.1:{free_port()}" for _ in range(2)]
    relays = {address: Relay(world.programs.relay, world.logs, address, name=f"relay-{number}", ready=address == good).address
              for number, address in enumerate([*dead, good])}
    for start in (world.grpc_python, world.grpc_go):
        for count in (1, 2):
            servers = [*dead[:count], good]
            direct, relayed = (first_answer(world, start, some) for some in (servers, [relays[server] for server in servers]))
            print(f"         {start.__name__}, {count} dead: direct {direct:.2f} s, through relays {relayed:.2f} s", flush=True)
            if relayed > direct + count * EACH + SLACK:
                raise Failed(f"{start.__name__}: {relayed:.2f} s through {count} dead relays, {direct:.2f} s direct")


def first_answer(world, start, servers):
    """How long a new client needs until its first call succeeds."""
    client = start(TARGET, text=bootstrap(*servers))
    began = time.monotonic()
    record = world.watch(client.records[TARGET])
    eventually("the first call succeeded", lambda: record.answers)
    took = time.monotonic() - began
    client.stop()
    return took
