# SPDX-License-Identifier: Apache-2.0
"""What the load tool dumps of a client starts an Envoy without a control plane, and a relay with files."""

import json
import subprocess

from peers import resources as make
from peers.envoy import AGGREGATED
from peers.process import Failed
from scenario import scenario
from scenarios.envoy_http import single_cluster


@scenario("F-11", AGGREGATED, caches=("linear",), relay_only="its files are for a relay", needs="load")
def a_dump_starts(world, dialect):
    """Nobody runs any more who gave the configuration: an Envoy of the bootstrap answers, and one that asks a relay with the files."""
    world.control_plane.apply(put=single_cluster(world, dialect, "a"))
    world.through_relay()
    given = world.logs / "given"
    more = ["--dialect", dialect.name.removeprefix("ads-"), "--node-id", "dumped"]
    command = [world.programs.load, "dump", "--server", world.relay.address, "--output", given, *more]
    said = subprocess.run(command, check=True, capture_output=True, text=True, timeout=30).stdout
    if "1 clusters, 1 endpoints, 1 listeners, 1 routes" not in said:
        raise Failed(f"dumped is {said!r}")
    world.relay.stop()
    world.control_plane.stop()

    bootstrap = json.loads((given / "bootstrap.json").read_text())
    bootstrap["admin"] = {"address": make.address(0)}
    envoy = world.envoy(dialect, node="alone", text=json.dumps(bootstrap)).ready()
    traffic = world.traffic()
    traffic.reaches("a")
    traffic.stop()
    envoy.stop()

    text = (given / "relay.yaml").read_text().replace("./resources", str(given / "resources"))
    world.start_relay(None, text=text)
    world.envoy(dialect, node="asking").ready()
    world.traffic().reaches("a")
