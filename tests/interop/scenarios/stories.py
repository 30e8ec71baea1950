# SPDX-License-Identifier: Apache-2.0
"""Outages that a guard can make or fail to see, each with a real Envoy under traffic. `thirteen` plays them with a guard and without
one: without it requests must fail, or the story is void."""

import subprocess
import time

from peers import resources as make
from peers.envoy import ADS_DELTA, ADS_SOTW
from peers.process import Failed, eventually, free_port
from peers.relay import GUARD
from scenario import scenario
from scenarios.amnesia import held, listeners, nothing_held
from scenarios.outages import successor

RELAY = "the control plane itself forgets"
OFF = GUARD == "off"
ONE = (ADS_DELTA,)
SNAPSHOT = ("snapshot",)
# How long clients must bear what was forgotten, in seconds.
LONG = 3


def relay(world, hold="60s", more="", transport="delta", **options):
    """A relay whose holds last so long, or, without a guard, one that holds nothing."""
    guard = "off" if OFF else f"{{ hold: {{ endpoints: {hold}, other: {hold} }} }}"
    server = f"server_uri: 'http://{world.control_plane.address}', transport: {transport}"
    return world.start_relay(None, text=f"upstream: {{ xds_servers: [{{ {server} }}] }}\nguard: {guard}\n{more}", **options)


def snapshots(world):
    folder = world.logs / "snapshots"
    folder.mkdir(exist_ok=True)
    return f"snapshot: {{ dir: '{folder}', interval: 50ms }}\n"


def doors(world, dialect, count):
    """Cluster x behind listeners l1, l2 and so on: all resources, and the port of each listener."""
    source = dialect.source()
    ports = {f"l{number}": free_port() for number in range(1, count + 1)}
    path = [make.cluster("x", source), make.endpoints("x", world.backends.http["a"]), make.routes("main", make.to("x"))]
    return path, [make.listener(name, port, make.rds("main", source)) for name, port in ports.items()], ports


def served(world, dialect, resources, ports, **options):
    """A relay with these options, an Envoy that has all of that, and traffic to each of these ports."""
    world.control_plane.apply(put=resources)
    one = relay(world, **options)
    envoy = world.envoy(dialect).ready()
    records = [world.traffic(port=port) for port in ports]
    for record in records:
        record.reaches("a")
    return one, envoy, records


def restart(world, resources):
    """The control plane restarts with only these."""
    world.control_plane.stop()
    successor(world).apply(put=resources)


def forgotten(world, reason="mass", record=None):
    """Waits until the relay holds something, or, without a guard, until requests fail."""
    if OFF:
        eventually("requests fail", lambda: record.failures)
    else:
        held(world, reason)


def judge(world, *records):
    """Writes down how many requests failed: none with a guard, some without one."""
    failed, total = (sum(counts) for counts in zip(*((len(one.failures), len(one.failures) + len(one.answers)) for one in records)))
    (world.logs / "story.txt").write_text(f"{failed} of {total} requests failed\n")
    if OFF and not failed:
        raise Failed("no request failed without a guard: the story is void")
    if OFF:
        for record in records:
            record.failures.clear()
            record.reaches("a")
            record.failures.clear()
    world.unbroken()


def repaired(world):
    if not OFF:
        nothing_held(world)


@scenario("D-10", ONE, SNAPSHOT, relay_only=RELAY)
def a_second_loss(world, dialect):
    """One listener is forgotten, and at a second restart two."""
    path, all_listeners, ports = doors(world, dialect, 5)
    _, _, records = served(world, dialect, [*path, *all_listeners], [ports["l1"], ports["l2"]])
    for lost in (1, 2):
        restart(world, [*path, *all_listeners[lost:]])
        forgotten(world, record=records[lost - 1])
        time.sleep(LONG)
    restart(world, [*path, *all_listeners])
    repaired(world)
    judge(world, *records)


@scenario("D-10", ONE, SNAPSHOT, relay_only=RELAY)
def a_server_that_flaps(world, dialect):
    """The control plane restarts with one half of the listeners, with the other half, and so on."""
    path, all_listeners, ports = doors(world, dialect, 4)
    _, _, records = served(world, dialect, [*path, *all_listeners], [ports["l1"], ports["l3"]])
    for round in range(4):
        half = all_listeners[2:] if round % 2 == 0 else all_listeners[:2]
        restart(world, [*path, *half])
        forgotten(world, record=records[round % 2])
        time.sleep(1)
    restart(world, [*path, *all_listeners])
    repaired(world)
    judge(world, *records)


@scenario("D-10", ONE, SNAPSHOT, relay_only=RELAY)
def a_listener_is_deployed_meanwhile(world, dialect):
    """One listener is forgotten, and somebody adds another one before it is back."""
    path, all_listeners, ports = doors(world, dialect, 4)
    _, envoy, records = served(world, dialect, [*path, *all_listeners[:3]], [ports["l1"]])
    restart(world, [*path, *all_listeners[1:3]])
    forgotten(world, record=records[0])
    world.control_plane.apply(put=[all_listeners[3]])
    eventually("Envoy has the new listener", lambda: listeners(envoy) == (3 if OFF else 4))
    time.sleep(LONG)
    world.control_plane.apply(put=all_listeners)
    repaired(world)
    judge(world, *records)


@scenario("D-09, D-10", ONE, SNAPSHOT, relay_only=RELAY)
def a_release_beside_a_judgement(world, dialect):
    """A person releases a cluster that only a reference holds, while a judgement holds others."""
    source, http = dialect.source(), world.backends.http
    names = [f"c{number}" for number in range(10)]
    clusters = [make.cluster(name, source) for name in names]
    assignments = [make.endpoints(name, http["a"]) for name in names]
    routes = make.routes("main", make.to("c9", "/nine"), make.to("c0"))
    path = [routes, make.listener("web", world.port, make.rds("main", source))]
    one, _, records = served(world, dialect, [*clusters, *assignments, *path], [world.port])
    world.control_plane.apply(remove=[("cds", "c9"), ("eds", "c9")])
    if not OFF:
        held(world, "referenced")
    restart(world, [*clusters[4:9], *assignments[4:9], *path])
    forgotten(world, record=records[0])
    if not OFF:
        words = ["holds", "release", "cds/c9", "--reason", "it is not needed", "--admin", one.admin]
        subprocess.run([one.program, *words], check=True, capture_output=True)
    time.sleep(LONG)
    world.control_plane.apply(put=[*clusters[:9], *assignments[:9], make.routes("main", make.to("c0"))])
    repaired(world)
    judge(world, *records)


@scenario("D-10", ONE, SNAPSHOT, relay_only=RELAY)
def amnesia_after_a_restart_with_holds(world, dialect):
    """The relay restarts while something is held, the control plane is whole again, and after the end of the old hold it forgets all."""
    path, all_listeners, ports = doors(world, dialect, 3)
    more = snapshots(world)
    old, _, records = served(world, dialect, [*path, *all_listeners], [ports["l1"]], hold="4s", more=more)
    if not OFF:
        restart(world, path)
        held(world, "mass")
        eventually("the snapshot has the hold", lambda: old.snapshot_has(world.logs / "snapshots", "lds", "l1"))
    old.kill()
    restart(world, [*path, *all_listeners])
    relay(world, "4s", more, address=old.address)
    repaired(world)
    time.sleep(5)  # Until the old hold would have ended.
    before = len(records[0].failures)
    restart(world, path)
    if OFF:
        eventually("requests fail", lambda: len(records[0].failures) > before)
    else:
        held(world, "mass")
    time.sleep(LONG - 1)  # Shorter than the hold.
    restart(world, [*path, *all_listeners])
    repaired(world)
    judge(world, *records)


@scenario("D-09", (ADS_SOTW,), SNAPSHOT, relay_only=RELAY)
def a_restored_route_over_sotw(world, dialect):
    """Over state of the world, the relay restarts, and the control plane has forgotten the clusters of a route that has not changed."""
    source, http = dialect.source(), world.backends.http
    names = [f"c{number}" for number in range(8)]
    clusters = [make.cluster(name, source) for name in names]
    assignments = [make.endpoints(name, http["a"]) for name in names]
    path = [make.routes("main", make.to("c0")), make.listener("web", world.port, make.rds("main", source))]
    more = snapshots(world)
    old, _, records = served(world, dialect, [*clusters, *assignments, *path], [world.port], hold="2s", more=more, transport="sotw")
    eventually("the snapshot has the route", lambda: old.snapshot_has(world.logs / "snapshots", "rds", "main"))
    old.kill()
    restart(world, [*clusters, *assignments, *path])
    # The versions of clusters and endpoints rise, those of listener and route do not.
    world.control_plane.apply(remove=[(kind, name) for kind in ("cds", "eds") for name in names[:6]])
    relay(world, "2s", more, "sotw", address=old.address)
    forgotten(world, "referenced", records[0])
    time.sleep(2 * LONG)
    world.control_plane.apply(put=[*clusters, *assignments])
    repaired(world)
    judge(world, *records)


@scenario("D-10", ONE, SNAPSHOT, relay_only=RELAY)
def a_server_that_dies_with_half_a_state(world, dialect):
    """The control plane says the half, and dies for longer than a hold lasts."""
    path, all_listeners, ports = doors(world, dialect, 3)
    _, _, records = served(world, dialect, [*path, *all_listeners], [ports["l1"]], hold="3s")
    restart(world, [*path, *all_listeners[2:]])
    forgotten(world, record=records[0])
    world.control_plane.stop()
    time.sleep(2 * LONG)
    successor(world).apply(put=[*path, *all_listeners])
    repaired(world)
    judge(world, *records)


@scenario("D-09", (ADS_SOTW,), SNAPSHOT, relay_only="it is about the relay's own words")
def rollouts_by_version(world, dialect):
    """A control plane that names routes and clusters by version, over state of the world: two rollouts are no trouble."""
    source, http = dialect.source(), world.backends.http

    def version(number):
        name = f"c-{number}"
        return [make.cluster(name, source), make.endpoints(name, http["a"]), make.routes(f"r-{number}", make.to(name)),
                make.listener("web", world.port, make.rds(f"r-{number}", source))]

    one, envoy, records = served(world, dialect, version(0), [world.port], transport="sotw")
    for number in (1, 2):
        gone = [(kind, f"c-{number - 1}") for kind in ("cds", "eds")] + [("rds", f"r-{number - 1}")]
        world.control_plane.apply(put=version(number), remove=gone)
        eventually("Envoy has the new cluster", lambda: f"c-{number}" in envoy.clusters())
        time.sleep(1)  # Traffic, while the old listener drains.
        for words in (["holds"], ["status"]):
            command = [one.program, *words, "--admin", one.admin]
            if code := subprocess.run(command, capture_output=True, timeout=20).returncode:
                raise Failed(f"`distributary {words[0]}` exits with {code} after an ordinary rollout")
    world.unbroken()
    total = len(records[0].answers)
    (world.logs / "story.txt").write_text(f"0 of {total} requests failed; `holds` and `status` exit with 0\n")
