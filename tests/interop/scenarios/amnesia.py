# SPDX-License-Identifier: Apache-2.0
"""A control plane comes back and has forgotten a part of what it had: what a real Envoy serves goes on."""

import subprocess
import time

from peers import resources as make
from peers.envoy import ADS_DELTA, AGGREGATED
from peers.process import Failed, eventually
from scenario import scenario
from scenarios.envoy_http import proxy, single_cluster
from scenarios.outages import successor

RELAY = "the control plane itself forgets"
# How long Envoy must bear what was forgotten, in seconds.
LONG = 3


def listeners(envoy):
    return envoy.stat("listener_manager.total_listeners_active")


def held(world, reason):
    eventually(f"the relay holds something: {reason}", lambda: reason in world.relay.page("/holds"), within=20)


def nothing_held(world, within=20):
    eventually("the relay holds nothing any more", lambda: "nothing is held" in world.relay.page("/holds"), within=within)


def guarded(world, guard):
    """Starts a relay with these settings."""
    server = f"http://{world.control_plane.address}"
    return world.start_relay(None, text=f"upstream: {{ xds_servers: [{{ server_uri: '{server}' }}] }}\nguard: {guard}\n")


def others(world, dialect):
    """Clusters beside the one that is used."""
    names = [f"other{number}" for number in range(5)]
    return [make.cluster(name, dialect.source()) for name in names], [make.endpoints(name, world.backends.http["a"]) for name in names]


@scenario("D-10, D-03", AGGREGATED, relay_only=RELAY)
def the_listeners_are_forgotten(world, dialect):
    """kuma #2171: who reconnects is told that there are no listeners, and a few seconds later that there are."""
    envoy, traffic = proxy(world, dialect)
    world.control_plane.stop()
    before = single_cluster(world, dialect, "b")
    successor(world).apply(put=before[:2])
    traffic.reaches("b")
    held(world, "mass")
    time.sleep(LONG)
    traffic.unbroken()
    world.control_plane.apply(put=before)
    nothing_held(world)
    world.control_plane.apply(put=[make.endpoints("x", world.backends.http["c"])])
    traffic.reaches("c")


@scenario("D-10", AGGREGATED, caches=("snapshot",), relay_only=RELAY)
def the_listeners_are_forgotten_without_a_guard(world, dialect):
    """The same with `guard: off`: Envoy loses its listener, so that what is played above is real."""
    world.control_plane.apply(put=single_cluster(world, dialect, "a"))
    guarded(world, "off")
    envoy = world.envoy(dialect).ready()
    eventually("Envoy has its listener", lambda: listeners(envoy) == 1)
    world.control_plane.stop()
    successor(world).apply(put=single_cluster(world, dialect, "a")[:2])
    eventually("Envoy has lost its listener", lambda: listeners(envoy) == 0, within=20)


@scenario("D-09", AGGREGATED, relay_only=RELAY)
def the_clusters_have_other_names(world, dialect):
    """wso2/api-platform #3197: after a restart the clusters have other names, but the routes still name the old ones."""
    envoy, traffic = proxy(world, dialect)
    world.control_plane.stop()
    cluster, endpoints, routes, listener = single_cluster(world, dialect, "a")
    others = [make.cluster("y", dialect.source()), make.endpoints("y", world.backends.http["b"])]
    successor(world).apply(put=[*others, routes, listener])
    held(world, "referenced")
    eventually("Envoy has the new cluster", lambda: "y" in envoy.clusters())
    time.sleep(LONG)
    traffic.unbroken()
    world.control_plane.apply(put=[make.routes("main", make.to("y"))])
    traffic.reaches("b")
    eventually("Envoy dropped cluster x", lambda: set(envoy.clusters()) == {"y"})
    # The only assignment was lost, and its judgement holds it until the relay gives up the name (`timers.linger`).
    nothing_held(world, within=50)


@scenario("D-09", AGGREGATED, relay_only=RELAY)
def a_route_leaves_long_after(world, dialect):
    """The route leaves its cluster 150 ms, 1 s and 5 s after the control plane has said that the cluster is gone."""
    envoy, traffic = proxy(world, dialect)
    old = "x"
    for new, backend, pause in (("y", "b", 0.15), ("z", "c", 1), ("w", "a", 5)):
        world.control_plane.apply(put=[make.cluster(new, dialect.source()), make.endpoints(new, world.backends.http[backend])])
        eventually(f"Envoy has cluster {new}", lambda: new in envoy.clusters())
        world.control_plane.apply(remove=[("cds", old), ("eds", old)])
        time.sleep(pause)
        world.control_plane.apply(put=[make.routes("main", make.to(new))])
        traffic.reaches(backend)
        eventually(f"Envoy dropped cluster {old}", lambda: set(envoy.clusters()) == {new})
        old = new
    nothing_held(world)


@scenario("D-10", AGGREGATED, relay_only=RELAY)
def half_of_the_clusters_are_forgotten(world, dialect):
    """istio #26886, envoy gateway #7115: another instance has fewer clusters, and later has them all."""
    clusters, endpoints = others(world, dialect)
    world.control_plane.apply(put=[*clusters, *endpoints])
    envoy, traffic = proxy(world, dialect)
    eventually("Envoy has all clusters", lambda: len(envoy.clusters()) == 6)
    world.control_plane.stop()
    successor(world).apply(put=single_cluster(world, dialect, "b"))
    traffic.reaches("b")
    held(world, "mass")
    time.sleep(LONG)
    if len(envoy.clusters()) != 6:
        raise Failed(f"Envoy has only {sorted(envoy.clusters())}")
    world.control_plane.apply(put=[*clusters, *endpoints])
    nothing_held(world)


@scenario("D-10", AGGREGATED, relay_only=RELAY)
def the_endpoints_are_forgotten(world, dialect):
    """istio #25100: after a restart all clusters are without endpoints, for longer than the hold lasts; a person extends it."""
    clusters, endpoints = others(world, dialect)
    world.control_plane.apply(put=[*clusters, *endpoints, *single_cluster(world, dialect, "a")])
    relay = guarded(world, "{ hold: { endpoints: 3s, other: 3s } }")
    world.envoy(dialect).ready()
    traffic = world.traffic()
    traffic.reaches("a")
    world.control_plane.stop()
    cluster, _, routes, listener = single_cluster(world, dialect, "a")
    empty = [make.endpoints(name) for name in ("x", *(f"other{number}" for number in range(5)))]
    successor(world).apply(put=[*clusters, *empty, cluster, routes, listener])
    held(world, "mass")
    words = ["holds", "extend", "eds/x", "--reason", "the control plane has no endpoints", "--for", "5m", "--admin", relay.admin]
    subprocess.run([relay.program, *words], check=True, capture_output=True)
    time.sleep(2 * LONG)
    traffic.unbroken()
    world.control_plane.apply(put=[*endpoints, make.endpoints("x", world.backends.http["b"])])
    traffic.reaches("b")
    nothing_held(world)


@scenario("D-10", AGGREGATED, relay_only=RELAY)
def a_listener_goes_for_a_moment(world, dialect):
    """kgateway #13963: the control plane removes a listener because of a mistake, in the middle of its life."""
    world.control_plane.apply(put=single_cluster(world, dialect, "a"))
    guarded(world, "{ within: always }")
    world.envoy(dialect).ready()
    traffic = world.traffic()
    traffic.reaches("a")
    world.control_plane.apply(remove=[("lds", "web")])
    held(world, "mass")
    time.sleep(LONG)
    traffic.unbroken()
    world.control_plane.apply(put=single_cluster(world, dialect, "b"))
    traffic.reaches("b")
    nothing_held(world)


def policed(world, dialect, guard):
    """An Envoy that refuses each request which no policy allows, and one policy that allows all. Returns the policy and the traffic."""
    rbac = make.FILTERS + "rbac.v3.RBAC"
    source = dialect.source()
    policy = {"@type": make.TYPES["ecds"], "name": "policy", "typed_config": {"@type": rbac, "rules": {
        "action": "ALLOW", "policies": {"all": {"permissions": [{"any": True}], "principals": [{"any": True}]}}}}}
    demand = {"name": "policy", "config_discovery": {"config_source": source, "type_urls": [rbac]}}
    cluster, endpoints, routes, _ = single_cluster(world, dialect, "a")
    web = make.listener("web", world.port, make.rds("main", source), filters=(demand, make.ROUTER))
    world.control_plane.apply(put=[cluster, endpoints, routes, policy, web])
    guarded(world, guard)
    world.envoy(dialect).ready()
    traffic = world.traffic()
    traffic.reaches("a")
    return policy, traffic


@scenario("D-10", (ADS_DELTA,), relay_only=RELAY)
def the_policies_go_for_a_moment(world, dialect):
    """cilium #47624: in the middle of its life the control plane has no policy at all, and without one Envoy refuses all requests."""
    policy, traffic = policed(world, dialect, "{ within: always }")
    world.control_plane.apply(remove=[("ecds", "policy")])
    held(world, "mass")
    time.sleep(LONG)
    traffic.unbroken()
    world.control_plane.apply(put=[policy])
    nothing_held(world)
    traffic.reaches("a")


@scenario("D-10", (ADS_DELTA,), caches=("snapshot",), relay_only=RELAY)
def the_policies_go_for_a_moment_without_a_guard(world, dialect):
    """The same with `guard: off`: requests fail, so that what is played above is real."""
    policy, traffic = policed(world, dialect, "off")
    world.control_plane.apply(remove=[("ecds", "policy")])
    eventually("requests fail", lambda: traffic.failures, within=20)
    world.control_plane.apply(put=[policy])
    traffic.reaches("a")
    traffic.failures.clear()
