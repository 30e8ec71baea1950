# SPDX-License-Identifier: Apache-2.0
"""`distributary survey`: by what a go-control-plane answers, and that clients behind the printed classes are told the same."""

import json
import subprocess

from peers import resources as make
from peers.envoy import ADS_DELTA
from peers.process import Failed
from scenario import scenario

RELAY = "it is about the relay's views"
CLIENTS = {"red": "a", "blue": "b"}
BY = {
    "snapshot": "classes: []",
    "nodes": "classes:\n  - { key: [cluster] }",
    "ids": "classes:\n  - { key: [id], node: client }",
}


def bootstraps(world):
    """One client as gRPC writes it, and one as Envoy does. They differ in much that does not count."""
    nodes = {name: {"id": f"{name}-1", "cluster": name, "metadata": {f"OF_{at}": f"{name} {at}" for at in range(20)},
                    "locality": {"zone": name}} for name in CLIENTS}
    texts = {
        "red": json.dumps({"xds_servers": [], "node": nodes["red"]}),
        "blue": f"static_resources: {{}}\nnode: {json.dumps(nodes['blue'])}\n",
    }
    files = []
    for name, text in texts.items():
        files.append(world.logs / f"{name}.bootstrap")
        files[-1].write_text(text)
    return nodes, files


def asked(world, server, node):
    """The endpoints that a server has for a node."""
    told = {}
    for kind in ("lds", "cds"):
        command = [world.programs.relay, "get", kind, "--server", server, "-o", "json", "--node-id", node["id"],
                   "--node-cluster", node["cluster"], "--locality", f"/{node['locality']['zone']}",
                   "--node-metadata", json.dumps(node["metadata"])]
        told[kind] = subprocess.run(command, check=True, capture_output=True, text=True, timeout=30).stdout
    return told


@scenario("K-02, K-04, K-28", caches=tuple(BY), relay_only=RELAY)
def what_a_control_plane_answers_by(world):
    """By nothing, by the cluster, by the id: each is found out, with two clients that differ in 24 fields."""
    source = ADS_DELTA.source()
    for name, backend in CLIENTS.items():
        tenant = {"ids": f"{name}-1", "nodes": name}.get(world.cache, "")
        of = "all" if world.cache == "snapshot" else name
        put = [make.cluster(f"{of}-x", source), make.endpoints(f"{of}-x", world.backends.http[backend]),
               make.routes(f"{of}-main", make.to(f"{of}-x")), make.listener(f"{of}-web", 1, make.rds(f"{of}-main", source))]
        world.control_plane.apply(put=put, tenant=tenant)
        if of == "all":
            break
    nodes, files = bootstraps(world)
    address = world.control_plane.address
    command = [world.programs.relay, "survey", address, "--timeout", "2s", "--from", *files]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=300)
    block = "\n".join(line for line in ended.stdout.splitlines() if not line.startswith("#"))
    if ended.returncode or block != BY[world.cache]:
        raise Failed(f"{ended.returncode}: {ended.stdout}{ended.stderr}")
    world.start_relay(None, text=f"upstream: {{ xds_servers: [{{ server_uri: 'http://{address}' }}] }}\n{block}\n")
    for name, node in nodes.items():
        direct, relayed = asked(world, address, node), asked(world, world.relay.address, node)
        if direct != relayed or (world.cache != "snapshot" and f"{name}-x" not in direct["cds"]):
            raise Failed(f"{name}: {direct} and behind the relay {relayed}")
