# SPDX-License-Identifier: Apache-2.0
"""A control plane that says nothing where nothing is new: what it says long after a reconnect is meant, and passes at once.

go-control-plane does not answer named types over delta, nor an equal version over state of the world. `control-planes/silence`
plays this with longer pauses, with and without a guard."""

import os
import time

from peers import resources as make
from peers.envoy import AGGREGATED
from peers.link import Link
from peers.process import Failed, eventually
from scenario import scenario

RELAY = "it is about the relay"
# How long after the reconnect the control plane speaks again, in seconds. Shorter than 11, endpoints may be lost by accident.
PAUSE = float(os.environ.get("DISTRIBUTARY_PAUSE", "12"))
# What passes without a guard takes less than that, in seconds.
AT_ONCE = 3.0
UPSTREAMS = (None, "sotw")


def reconnected(world, dialect, resources):
    """An Envoy with these resources, whose relay lost its control plane and found it again, so long ago, and its link."""
    world.control_plane.apply(put=resources)
    link = Link(world.control_plane.address)
    world.start_relay(link.address)
    envoy = world.envoy(dialect).ready()
    eventually("Envoy has its listener", lambda: listeners(envoy) == 1)
    before = len(world.control_plane.requests("lds"))
    link.cut()
    eventually("the relay asks again", lambda: len(world.control_plane.requests("lds")) > before)
    time.sleep(PAUSE)
    if "nothing is held" not in (page := world.relay.page("/holds")):
        raise Failed(f"something is held although nothing was lost: {page}")
    return envoy


def listeners(envoy):
    return envoy.stat("listener_manager.total_listeners_active")


def passes(world, what, condition, after=PAUSE):
    """Waits until something has passed, notes how long that took, and fails if it was held."""
    began = time.monotonic()
    eventually(what, condition, within=100)
    took = time.monotonic() - began
    (world.logs / "took.txt").write_text(f"{what}: {took * 1000:.0f} ms, {after:g} s after the reconnect\n")
    if took > AT_ONCE:
        raise Failed(f"{what} took {took:.1f} s")
    if "nothing is held" not in (page := world.relay.page("/holds")):
        raise Failed(f"something is held: {page}")


@scenario("D-10", AGGREGATED, upstreams=UPSTREAMS, relay_only=RELAY)
def a_drain_after_a_quiet_reconnect(world, dialect):
    """The endpoints of the first member of an aggregate cluster are emptied on purpose: traffic moves to the second one."""
    source, http = dialect.source(), world.backends.http
    drained = ["first", *(f"other{number}" for number in range(4))]
    clusters = [make.cluster(name, source) for name in (*drained, "second")]
    assignments = [make.endpoints("second", http["b"]), *(make.endpoints(name, http["a"]) for name in drained)]
    both = make.aggregate("x", "first", "second")
    path = [make.routes("main", make.to("x")), make.listener("web", world.port, make.rds("main", source))]
    reconnected(world, dialect, [*clusters, *assignments, both, *path])
    traffic = world.traffic()
    traffic.reaches("a")
    world.control_plane.apply(put=[make.endpoints(name) for name in drained])
    passes(world, "the drain", lambda: traffic.answers[-1] == "b")
    traffic.reaches("b")
    traffic.unbroken()


@scenario("D-10", AGGREGATED, upstreams=UPSTREAMS, relay_only=RELAY)
def a_listener_goes_after_a_quiet_reconnect(world, dialect):
    """The only listener is removed on purpose."""
    source = dialect.source()
    path = [make.cluster("x", source), make.endpoints("x", world.backends.http["a"]), make.routes("main", make.to("x")),
            make.listener("web", world.port, make.rds("main", source))]
    envoy = reconnected(world, dialect, path)
    if PAUSE < 31:  # Before, it may be lost by accident.
        time.sleep(31 - PAUSE)
    world.control_plane.apply(remove=[("lds", "web"), ("rds", "main")])
    passes(world, "the removal", lambda: listeners(envoy) == 0, after=max(PAUSE, 31))
