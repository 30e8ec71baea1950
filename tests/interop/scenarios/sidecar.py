# SPDX-License-Identifier: Apache-2.0
"""A relay beside a workload, as `config/sidecar.yaml` has it, and programs with many targets: each target has a stream of its own to
the xDS server, but only one or two of them are left at the control plane."""

from peers import resources as make
from peers.manual import written
from peers.process import Failed, eventually, free_port
from scenario import scenario

RELAY = "each target has a stream of its own"
TARGETS = [f"target-{number}" for number in range(50)]


def services(backend):
    """Fifty targets, which share a route, a cluster and its endpoints."""
    shared = [make.routes("shared", make.to("shared", "")), make.cluster("shared"), make.endpoints("shared", backend)]
    return [*shared, *(make.api_listener(name, make.rds("shared")) for name in TARGETS)]


def beside(world):
    """A relay with the file of the manual, whose addresses and control plane are those of this place."""
    port, socket = free_port(), world.logs / "xds.sock"
    text = written("sidecar.yaml", {"/run/distributary/xds.sock": socket, "127.0.0.1:15010": f"127.0.0.1:{port}",
                                    "https://control-plane.example.com:18000": f"http://{world.control_plane.address}"})
    relay = world.start_relay(None, text=text, listens=True)
    return relay, f"127.0.0.1:{port}", f"unix:{socket}"


def streams(control_plane):
    """How many streams a control plane had at once."""
    open_now, most = set(), 0
    with control_plane.news:
        for line in control_plane.lines:
            if line.get("event") == "open":
                open_now.add((line["dialect"], line["stream"]))
                most = max(most, len(open_now))
            elif line.get("event") == "closed":
                open_now.discard((line["dialect"], line["stream"]))
    return most


def fifty(world, start, socket):
    """The program calls all its targets through the relay, and, for comparison, a program of the same kind does without one."""
    direct = world.another_control_plane("direct")
    for plane in (world.control_plane, direct):
        plane.apply(put=services(world.backends.grpc["a"]))
    relay, port, unix = beside(world)
    relay.address = unix if socket else port  # Over a Unix socket the relay serves gRPC in Go only.
    text = relay.bootstrap("grpc", "--node-id", "workload")
    targets = [f"xds:///{name}" for name in TARGETS]
    client = start(world, targets, text)
    records = [world.watch(client.records[target]) for target in targets]
    eventually("each target is answered", lambda: all(record.answers for record in records), within=60)
    most = streams(world.control_plane)
    if most > 2:
        raise Failed(f"{most} streams at the control plane")
    world.control_plane.apply(put=[make.endpoints("shared", world.backends.grpc["b"])])
    eventually("each target follows", lambda: all(record.answers[-1] == "b" for record in records), within=30)
    client.stop()
    world.xds = direct.address
    other = start(world, targets, None)
    eventually("each target is answered without the relay", lambda: all(record.answers for record in other.records.values()), within=60)
    (world.logs / "streams.txt").write_text(f"{most} streams through the relay, {streams(direct)} without it\n")
    other.stop()


@scenario("A-11, K-23", caches=("linear",), relay_only=RELAY)
def fifty_targets_of_grpc_go(world):
    fifty(world, lambda world, targets, text: world.grpc_go(*targets, text=text), socket=True)


@scenario("A-11, K-23", caches=("linear",), relay_only=RELAY)
def fifty_targets_of_grpc_python(world):
    fifty(world, lambda world, targets, text: world.grpc_python(*targets, text=text), socket=False)


@scenario("A-11, K-23", caches=("linear",), relay_only=RELAY, needs="java")
def fifty_targets_of_grpc_java(world):
    fifty(world, lambda world, targets, text: world.grpc_java(*targets, text=text), socket=False)
