# SPDX-License-Identifier: Apache-2.0
"""A fault of one name costs a client that name and nothing else."""

from peers import resources as make
from peers.envoy import ADS_DELTA, EVERY
from peers.process import eventually, free_port
from scenario import scenario
from scenarios.envoy_http import proxy, single_cluster


@scenario("B-32, B-11", EVERY, relay_only="a snapshot cache in ADS mode answers no list with a name that it does not have",
          where="sotw/snapshot")
def a_listener_without_a_name_of_its_routes(world, dialect):
    """Envoy accepts a listener whose route_config_name is empty, and asks for routes of that name. Everything else goes on;
    once the name is repaired, the listener works."""
    envoy, traffic = proxy(world, dialect)
    source, http, port = dialect.source(), world.backends.http, free_port()
    world.control_plane.apply(put=[make.listener("slip", port, make.rds("", source))])
    eventually("Envoy has the listener", lambda: envoy.stat("listener_manager.listener_added") == 2)
    for backend in "bca":
        world.control_plane.apply(put=[make.endpoints("x", http[backend])])
        traffic.reaches(backend)

    world.control_plane.apply(put=[make.listener("slip", port, make.rds("main", source))])
    eventually("Envoy uses the listener", lambda: envoy.stat("listener_manager.total_listeners_active") == 2)
    repaired = world.traffic(port=port)
    repaired.reaches("a")
    world.control_plane.apply(put=[make.endpoints("x", http["b"])])
    for record in (traffic, repaired):
        record.reaches("b")


@scenario("B-32, C-15", (ADS_DELTA,), caches=("linear",))
def routes_that_do_not_exist(world, dialect):
    """An Envoy whose listeners lead to routes that nobody has starts all the same, after its initial_fetch_timeout of 15 s:
    the first one, and another one when it is known that nobody has them."""
    source = dialect.source()
    lost = [make.listener(f"lost{at}", free_port(), make.rds(name, source)) for at, name in enumerate(("", "nobody-has-this"))]
    world.control_plane.apply(put=[*single_cluster(world, dialect, "a"), *lost])
    world.through_relay().envoy(dialect).ready(40)
    world.traffic().reaches("a")
    world.envoy(dialect, node="another").ready(40)
