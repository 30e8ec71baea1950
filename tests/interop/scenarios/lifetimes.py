# SPDX-License-Identifier: Apache-2.0
"""Times to live: a fault that is injected for three seconds ends after three seconds, whatever happens meanwhile."""

import signal
import time

from peers import resources as make
from peers.envoy import AGGREGATED
from peers.process import Failed, eventually
from peers.traffic import ask
from scenario import scenario
from scenarios.envoy_types import clusters
from scenarios.files import place, sources

RELAY = "the control plane is a relay that reads a file"
LIFE = 3


class Fault:
    """An Envoy behind a relay, and a runtime layer in a file that makes it abort every request, for as long as the file is
    written again and again."""

    def __init__(self, world, dialect):
        self.world, self.file = world, world.logs / "lifetimes.json"
        source = dialect.source()
        fault = {"name": "fault", "typed_config": {
            "@type": make.FILTERS + "fault.v3.HTTPFault", "abort": {"http_status": 503, "percentage": {"numerator": 0}}}}
        layer = {"@type": make.PREFIX + "envoy.service.discovery.v3.Resource", "name": "faults", "ttl": f"{LIFE}s",
                 "resource": make.runtime("faults", **{"fault.http.abort.abort_percent": 100})}
        self.content = [
            *clusters(world, source, "a"), make.routes("main", make.to("a")), layer,
            make.listener("web", world.port, make.rds("main", source), filters=(fault, make.ROUTER)),
        ]
        self.refresh()
        self.control_plane = world.start_relay(None, text=sources(f"file://{self.file}"))
        self.relay = world.start_relay(self.control_plane.address)
        self.refresh()
        self.envoy = world.envoy(dialect, layers=["faults"]).ready()
        eventually("requests are aborted", self.refreshed_and_aborts)
        # Longer than it lives without being refreshed.
        until = time.monotonic() + LIFE + 1
        while time.monotonic() < until:
            if not self.refreshed_and_aborts():
                raise Failed("the fault ended although it was refreshed")

    def refresh(self):
        place(self.file, self.content)
        self.last = time.monotonic()

    def refreshed_and_aborts(self):
        if time.monotonic() > self.last + LIFE / 6:
            self.refresh()
        return self.aborts()

    def aborts(self):
        return (ask(self.world.port)[1] or "").startswith("status 503")

    def ends(self):
        """Within its time, not at once and not by a restart of anything."""
        if not self.aborts():
            raise Failed("the fault ended at once")
        eventually("requests succeed", lambda: not self.aborts(), within=LIFE + 2)
        if (took := time.monotonic() - self.last) < LIFE - 1:
            raise Failed(f"the fault ended after {took:.1f} s")


@scenario("B-30, K-17, K-18", AGGREGATED, caches=("linear",), relay_only=RELAY)
def a_fault_ends_though_the_relay_is_killed(world, dialect):
    """Envoy ends it by itself, and takes it again from the next relay."""
    fault = Fault(world, dialect)
    fault.relay.kill()
    fault.ends()
    world.start_relay(fault.control_plane.address, address=fault.relay.address)
    eventually("requests are aborted again", fault.refreshed_and_aborts)
    fault.ends()


@scenario("B-30, K-17, K-18", AGGREGATED, caches=("linear",), relay_only=RELAY)
def a_fault_ends_though_the_control_plane_is_silent(world, dialect):
    """Nobody says that it ended, and the relay lives on."""
    fault = Fault(world, dialect)
    fault.control_plane.child.send_signal(signal.SIGSTOP)
    try:
        fault.ends()
    finally:
        fault.control_plane.kill()
