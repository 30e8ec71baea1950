# SPDX-License-Identifier: Apache-2.0
"""What does not exist: an Envoy is sent the errors of names, and loses nothing by them."""

from peers import resources as make
from peers.envoy import EVERY, UNIFIED_SOTW
from peers.process import Failed, eventually, free_port
from peers.traffic import ask
from scenario import scenario
from scenarios.envoy_http import proxy


@scenario("B-31, C-15", (*EVERY, UNIFIED_SOTW), relay_only="it is about the relay")
def nothing_is_lost_by_an_error(world, dialect):
    """A cluster has no endpoints, and a listener no routes. Envoy is told so, goes on with all else and rejects nothing. It uses both when
    they come at last."""
    envoy, traffic = proxy(world, dialect)
    source, http, other = dialect.source(), world.backends.http, free_port()
    world.control_plane.apply(put=[make.cluster("y", source), make.listener("second", other, make.rds("later", source))])
    eventually("the relay waits no longer", lambda: {"y", "later"} <= timed_out(world), within=40)
    for backend in "ba":
        world.control_plane.apply(put=[make.endpoints("x", http[backend])])
        traffic.reaches(backend)
    if found := envoy.rejected():
        raise Failed(f"Envoy rejected {found}")
    world.control_plane.apply(put=[make.endpoints("y", http["c"])])
    world.control_plane.apply(put=[make.routes("later", make.to("y"))])
    eventually("the second listener answers", lambda: ask(other)[0] == "c")
    traffic.reaches("a")
    if found := envoy.rejected():
        raise Failed(f"Envoy rejected {found}")


def timed_out(world):
    """The names for which the control plane had no answer in time."""
    return {line.split('"name":"')[1].split('"')[0] for line in world.relay.page("/resources?state=timeout").splitlines() if '"name":"' in line}
