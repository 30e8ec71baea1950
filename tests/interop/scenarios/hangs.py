# SPDX-License-Identifier: Apache-2.0
"""Peers that hang: they are there, and say nothing. Operators see each of them."""

import json
import signal
import subprocess
import time

from peers import resources as make
from peers.envoy import ADS_DELTA
from peers.process import Failed, eventually
from peers.subscribers import Subscribers
from scenario import scenario

RELAY = "it is about the relay"
CLIENTS = 6
CLUSTERS = 2
# A control plane is pinged after 35 s of silence, and has 20 s to answer.
NOTICED = 70.0


def served(world, **more):
    """A relay, and clients that have everything."""
    names = [f"many-{number}" for number in range(CLUSTERS)]
    everything = [*(part for name in names for part in (make.cluster(name), make.endpoints(name, 8080))),
                  make.listener("web", world.port, make.rds("main")), make.routes("main", make.to("many-0"))]
    world.control_plane.apply(put=everything)
    relay = world.start_relay(world.control_plane.address, **more)
    clients = Subscribers(world.programs.go, world.logs, CLIENTS, CLUSTERS, [relay.address])
    eventually("all clients have everything", lambda: clients.settled([relay.address]))
    return relay, clients


def metric(relay, name):
    """The value of a metric without labels, or None."""
    lines = [line.split(" ") for line in relay.page("/metrics").splitlines()]
    return next((float(line[1]) for line in lines if line[0] == f"distributary_{name}"), None)


@scenario("A-12", caches=("linear",), relay_only=RELAY)
def clients_hang(world):
    """Their streams end, and each of them is counted and named in the log; they come back when they go on."""
    upstream = f"upstream: {{ xds_servers: [{{ server_uri: 'http://{world.control_plane.address}' }}] }}\n"
    relay, clients = served(world, text=f"{upstream}timers: {{ keepalive: 2s }}\n")
    clients.child.send_signal(signal.SIGSTOP)
    try:
        eventually("all streams have ended", lambda: metric(relay, "unanswered_pings_total") == CLIENTS)
    finally:
        clients.child.send_signal(signal.SIGCONT)
    said = [line for line in relay.log.read_text().splitlines() if "does not answer pings" in line]
    if len(said) != CLIENTS or not all("node=" in line and "peer=" in line for line in said):
        raise Failed(f"the log says {said}")
    eventually("all clients have come back", lambda: clients.settled([relay.address]))
    if (all_ended := metric(relay, "unanswered_pings_total")) != CLIENTS:
        raise Failed(f"{all_ended} streams have ended")


@scenario("A-12", caches=("linear",), relay_only=RELAY)
def an_envoy_hangs(world):
    """Its stream ends, with a line that names it, and counts as `DistributaryLagging` counts it; others keep theirs, and it comes
    back when it goes on."""
    upstream = f"upstream: {{ xds_servers: [{{ server_uri: 'http://{world.control_plane.address}' }}] }}\n"
    relay, clients = served(world, text=f"{upstream}timers: {{ keepalive: 2s }}\n")
    envoy = world.envoy(ADS_DELTA, node="edge-fra-1").ready()
    streams = set(clients.streams())
    envoy.child.send_signal(signal.SIGSTOP)
    try:
        eventually("its stream has ended", lambda: metric(relay, "unanswered_pings_total") == 1)
    finally:
        envoy.child.send_signal(signal.SIGCONT)
    said = [line for line in relay.log.read_text().splitlines() if "does not answer pings" in line]
    if len(said) != 1 or "node=edge-fra-1 " not in said[0] or "level=warn" not in said[0]:
        raise Failed(f"the log says {said}")
    # Clients are counted once a second.
    hung = eventually("who hung is told", lambda: json.loads(relay.page("/clusters?format=json"))["clients"].get("hung_clients"))
    if [(one["name"], one["why"]) for one in hung] != [("edge-fra-1", "it answered no ping")] or metric(relay, "hanging_clients") < 1:
        raise Failed(f"who hung is told as {hung}")
    status = subprocess.run([world.programs.relay, "status", "--admin", relay.admin], capture_output=True, text=True, timeout=20)
    if status.returncode != 1 or "1 hung and was cut off in the last 10 min: edge-fra-1" not in status.stderr:
        raise Failed(f"`status` does not name it: {status}")
    world.control_plane.apply(put=[make.endpoints("many-0", 8081)])
    eventually("it has come back, and is up to date",
               lambda: json.loads(relay.page("/clients?format=json&node=edge-fra-1&state=current"))["clients"])
    if set(clients.streams()) != streams:
        raise Failed("others have lost their streams")


@scenario("A-12", caches=("linear",), relay_only=RELAY)
def a_control_plane_hangs(world):
    """The relay knows within a minute that it does not answer, and is served again when it goes on; clients notice nothing."""
    relay, clients = served(world)
    control_plane, began = world.control_plane, time.monotonic()
    before = len(clients.streams())

    def state():
        authorities = json.loads(relay.page("/clusters?format=json"))["authorities"]
        return authorities[0]["servers"][0]["state"]

    control_plane.child.send_signal(signal.SIGSTOP)
    try:
        eventually("it does not answer", lambda: state() != "answering", within=NOTICED)
        if (took := time.monotonic() - began) < 30:
            raise Failed(f"it was given up after {took:.0f} s, before it was asked")
    finally:
        control_plane.child.send_signal(signal.SIGCONT)
    eventually("it answers", lambda: state() == "answering", within=NOTICED)
    if len(clients.streams()) != before:
        raise Failed("clients have lost their streams")


@scenario("A-12", caches=("linear",), relay_only=RELAY)
def a_control_plane_that_forbids_pings_hangs(world):
    """gRPC servers in Go close a connection on which they are pinged more often than every five minutes. That is said, and a hang is
    noticed as soon as before."""
    relay, clients = served(world)
    control_plane = world.control_plane
    before = len(clients.streams())

    def server():
        return json.loads(relay.page("/clusters?format=json"))["authorities"][0]["servers"][0]

    # Three pings are too many, and each follows 35 s of silence.
    eventually("it forbids pings", lambda: "the server forbids HTTP/2 pings" in relay.log.read_text(), within=4 * NOTICED)
    eventually("it answers", lambda: server()["state"] == "answering")
    time.sleep(5)
    began = time.monotonic()
    control_plane.child.send_signal(signal.SIGSTOP)
    try:
        eventually("it does not answer", lambda: server()["state"] != "answering", within=90.0)
        took = time.monotonic() - began
        eventually("it is said", lambda: "does not answer calls" in json.dumps(server()), within=5.0)
        # A new connection is accepted by the system, and silent for 30 s.
        eventually("so it is of a new connection", lambda: "does not answer on a new connection" in json.dumps(server()),
                   within=NOTICED)
        if "is it a gRPC port" in relay.log.read_text():
            raise Failed("a port that has answered before is asked for its kind")
    finally:
        control_plane.child.send_signal(signal.SIGCONT)
    eventually("it answers", lambda: server()["state"] == "answering", within=NOTICED)
    if len(clients.streams()) != before:
        raise Failed("clients have lost their streams")
    print(f"a hang was noticed after {took:.0f} s")
