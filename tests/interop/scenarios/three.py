# SPDX-License-Identifier: Apache-2.0
"""Three Envoys of two versions and grpc-go, each on its one stream: routes from one control plane, endpoints from another, a secret from a
folder. All of it moves, and the second control plane dies: no request fails."""

import json
import os
import time

from peers import envoy, resources as make
from peers.control_plane import certificate
from peers.envoy import ADS_DELTA, ADS_SOTW
from peers.process import Failed, eventually, free_port
from scenario import scenario
from scenarios.apart import AWAY, LATE, MOVES, Target, holds, two_sources
from scenarios.moves import RELAY
from scenarios.sources import WITH_SECRET, write

# The older Envoy: another program, if `tests/interop/apart` has fetched one.
OLDER = os.environ.get("DISTRIBUTARY_OLDER_ENVOY")


def three(world):
    """Three Envoys; all of them listen on the same ports, and the kernel divides the connections between them."""
    older = envoy.Envoy(OLDER or world.programs.envoy, world.logs, ADS_DELTA, world.xds, "older")
    return [world.client(older), world.envoy(ADS_SOTW, "sotw"), world.envoy(ADS_DELTA, "delta")]


def settled(envoys, clusters):
    """All of them have these clusters, and no others."""
    for one in envoys:
        eventually(f"{one.name} has {clusters}", lambda one=one: set(one.clusters()) == clusters)


def shows(envoys, name):
    """All of them have the certificate for this name."""
    for one in envoys:
        eventually(f"{one.name} has the certificate of {name}", lambda one=one: f"{name}.test" in one.get("/certs", ""))


@scenario("D-11, D-12, F-18, F-19", caches=("linear",), relay_only=RELAY)
def three_envoys_between_two_control_planes(world):
    """Each second move is one of grpc-go. At last, routes move on while the registry is dead: they wait, and the last of each is sent once."""
    registry, source = world.another_control_plane("registry"), ADS_DELTA.source()
    web = Target(world, registry, world.backends.http, (source,), "x", "main")
    shop = Target(world, registry, world.backends.grpc, (), "y", "shop-routes")
    web.start("a"), shop.start("a")
    secured = make.listener("secured", free_port(), make.rds("main", source), transport_socket=WITH_SECRET)
    world.control_plane.apply(put=[make.listener("web", world.port, make.rds("main", source)), secured,
                                   make.api_listener("shop", make.rds("shop-routes"))])
    folder = world.logs / "three-secrets"
    folder.mkdir()
    secret = lambda name: write(folder, make.secret("web", certificate(world.programs.go, f"{name}.test")))
    secret("first")
    relay = two_sources(world, registry, f"  - {{ types: [sds], xds_servers: [{{ server_uri: '{folder}' }}] }}\nsecrets: allow")
    envoys = [one.ready() for one in three(world)]
    records = [world.traffic(), world.watch(world.grpc_go("xds:///shop").records["xds:///shop"])]
    for record in records:
        record.reaches("a")

    for step in range(MOVES):
        target, record = ((web, records[0]), (shop, records[1]))[step % 2]
        target.move("bca"[step // 2 % 3], LATE[step % len(LATE)])
        record.reaches("bca"[step // 2 % 3])
        settled(envoys, {web.cluster(), shop.cluster()})
        if step % 10 == 5:
            secret(f"at-{step}")
            shows(envoys, f"at-{step}")

    updates = [one.stat("http.interop.rds.main.update_success") for one in envoys]
    registry.stop()
    eventually("the relay has noticed", lambda: f"#registry::http://{registry.address}::state::unreachable" in relay.page("/clusters"))
    moves, began, last = max(MOVES // 4, 2), time.monotonic(), web.step
    for _ in range(moves):
        web.step += 1
        world.control_plane.apply(put=[make.cluster(web.cluster(), source), web.routes()])
        time.sleep(AWAY / moves)
    eventually("the route waits", lambda: holds(relay))
    if (away := time.monotonic() - began) < AWAY * 0.8:
        raise Failed(f"the registry was away for {away:.0f} s only")
    secret("meanwhile")
    shows(envoys, "meanwhile")
    again = world.another_control_plane("registry", registry.address)
    again.apply(put=[make.endpoints(shop.cluster(), world.backends.grpc["abc"[(MOVES // 2) % 3]]),
                     *(make.endpoints(web.cluster(step), world.backends.http["b" if step > last else "a"])
                       for step in range(last, web.step + 1))])
    records[0].reaches("b", within=40)
    eventually("nothing waits", lambda: not json.loads(relay.page("/holds?format=json"))["holds"])
    for one, before in zip(envoys, updates):
        if (sent := one.stat("http.interop.rds.main.update_success") - before) != 1:
            raise Failed(f"{one.name} was sent the route {sent} times")
        if one.stat("http.interop.downstream_rq_completed") < 10:
            raise Failed(f"{one.name} had no traffic")
    versions = [json.loads(one.get("/server_info"))["version"].split("/")[1] for one in envoys]
    for record in records:
        print(f"         {record.name}: {len(record.answers)} requests over {MOVES} and {moves} moves, {len(record.failures)} failed", flush=True)
    print(f"         Envoys {', '.join(versions)}", flush=True)
