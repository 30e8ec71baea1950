# SPDX-License-Identifier: Apache-2.0
"""Configuration moves under traffic while the control plane takes its time for each response, and not one request fails.

Without a relay the figures are printed, and nothing is expected of them.
"""

import os
import time

from peers import resources as make
from peers.envoy import AGGREGATED
from peers.process import eventually
from scenario import scenario
from scenarios.envoy_http import proxy
from scenarios.grpc_traffic import service
from scenarios.moves import RELAY, put_target
from scenarios.outages import successor

# How long each response takes, in milliseconds, and how often everything moves with each of these times.
TIMES = (0, 20, 300)
ROUNDS = int(os.environ.get("DISTRIBUTARY_ROUNDS", "1"))
# Between two calls of a gRPC client, in milliseconds: more than 200 in a second.
CALL_EVERY = "3"
# What a change may take to arrive: several responses one after the other, on a busy machine.
SLOWLY = 30.0
BACKENDS = "bca"


def rounds(most=ROUNDS):
    """Each step of each round at each pace: (time of a response, number of the step, backend that answers afterwards)."""
    steps = [(pause, backend) for pause in TIMES for _ in range(min(ROUNDS, most)) for backend in BACKENDS]
    return [(pause, step, backend) for step, (pause, backend) in enumerate(steps)]


def tell(world, *records):
    """Says how many requests have failed. At the end, any that failed through the relay fails the run."""
    for record in records:
        failed = len(record.failures)
        print(f"         {record.name}: {failed} of {failed + len(record.answers)} requests failed", flush=True)
        if world.direct:
            record.failures.clear()


def grpc_clients(world):
    """A client of each gRPC implementation that is installed here, with its record."""
    os.environ["INTEROP_CALL_EVERY"] = CALL_EVERY
    started = [world.grpc_go("xds:///shop"), world.grpc_python("xds:///shop")]
    started += [world.grpc_java("xds:///shop")] if world.programs.java else []
    started += [world.grpc_js("xds:///shop")] if world.programs.js else []
    clients = [(client, world.watch(client.records["xds:///shop"])) for client in started]
    for _, record in clients:
        record.reaches("a", within=SLOWLY)
    return clients


@scenario("D-01, D-03, D-09", caches=("linear", "snapshot"))
def slowly_renamed_for_grpc(world):
    """A cluster is removed, and held; then a listener names another route, which leads to another cluster."""
    ports = world.backends.grpc
    put_target(world, 0, ports["a"])
    world.through_relay()
    clients = grpc_clients(world)
    for pause, step, backend in rounds():
        world.control_plane.take(pause)
        world.control_plane.apply(remove=[("cds", f"c{step}"), ("eds", f"c{step}")])
        time.sleep(0.3)
        put_target(world, step + 1, ports[backend], remove=[("rds", f"r{step}")])
        for _, record in clients:
            record.reaches(backend, within=SLOWLY)
    tell(world, *(record for _, record in clients))
    print(f"         grpc-go's own race (unknown cluster selected): {clients[0][0].races}", flush=True)


@scenario("D-01, D-03, D-09", AGGREGATED, caches=("linear", "snapshot"))
def slowly_renamed(world, dialect):
    """The same with Envoy. In each second step of a snapshot the listener goes, and another one takes its address."""
    if world.direct:
        world.expect_rejections()
    envoy, traffic = proxy(world, dialect)
    source, http = dialect.source(), world.backends.http
    route, cluster, listener = "main", "x", "web"
    for pause, step, backend in rounds():
        world.control_plane.take(pause)
        world.control_plane.apply(remove=[("cds", cluster), ("eds", cluster)])
        time.sleep(0.3)
        gone = [("rds", route)]
        route, cluster = f"r{step}", f"c{step}"
        world.control_plane.apply(put=[make.cluster(cluster, source), make.endpoints(cluster, http[backend]), make.routes(route, make.to(cluster))])
        # With linear caches this would be two changes, and the address would not be free at the first of them.
        if step % 2 and world.cache == "snapshot":
            gone.append(("lds", listener))
            listener = f"{'az'[step // 2 % 2]}{step}"
        world.control_plane.apply(put=[make.listener(listener, world.port, make.rds(route, source))], remove=gone)
        traffic.reaches(backend, within=SLOWLY)
        eventually(f"Envoy has only {cluster}", lambda: set(envoy.clusters()) == {cluster}, SLOWLY)
    tell(world, traffic)


@scenario("G-11, G-17, D-03", caches=("linear", "snapshot"), relay_only=RELAY)
def slowly_there_and_back(world):
    """A target lacks a cluster, and its first control plane goes: clients move to the second one, which has other names, and back."""
    ports, second = world.backends.grpc, world.another_control_plane("second")
    world.control_plane.apply(put=service("shop", ports["a"]))
    second.apply(put=[make.api_listener("shop", make.rds("shop-routes")), make.routes("shop-routes", make.to("other", "")),
                      make.cluster("other"), make.endpoints("other", ports["b"])])
    world.start_relay([world.control_plane.address, second.address])
    clients = grpc_clients(world)
    cycles = rounds(most=4)[::len(BACKENDS)]
    for pause, step, _ in cycles if ROUNDS > 1 else cycles[-1:]:  # Clients take a quarter of a minute for each.
        world.control_plane.take(pause)
        second.take(pause)
        world.control_plane.apply(put=[make.routes("shop-routes", make.to(f"not-yet-{step}", ""))])
        world.control_plane.wait_for_request("cds", f"not-yet-{step}")
        world.control_plane.stop()
        for _, record in clients:
            record.reaches("b", within=SLOWLY)
        first, backend = successor(world), "ca"[step // len(BACKENDS) % 2]
        first.take(pause)
        first.apply(put=service("shop", ports[backend]))
        for _, record in clients:
            record.reaches(backend, within=SLOWLY)
    tell(world, *(record for _, record in clients))
    print(f"         grpc-go's own race (unknown cluster selected): {clients[0][0].races}", flush=True)
