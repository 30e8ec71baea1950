# SPDX-License-Identifier: Apache-2.0
"""Envoys outside the cluster, with `config/outside.yaml` as it is written: each site gets its own resources, and nobody those of another."""

from peers import resources as make
from peers.control_plane import certificate
from peers.envoy import AGGREGATED
from peers.manual import written
from peers.process import Failed, eventually, free_port
from scenario import scenario

SITES = {"paris": "a", "oslo": "b"}


def credentials(world):
    """The relay's certificate, and one for each site: paths by name and kind."""
    files = {}
    for name, of in (("relay", "127.0.0.1"), *((site, f"{site}.edge.example.com") for site in SITES)):
        for kind, text in certificate(world.programs.go, of).items():
            files[name, kind] = world.logs / f"{name}.{kind}"
            files[name, kind].write_text(text)
    trusted = world.logs / "clients.pem"
    trusted.write_text("".join(files[site, "certificate"].read_text() for site in SITES))
    return files, trusted


def resources(world, source, site, port):
    """What one site has."""
    return [make.listener(f"{site}/web", port, make.rds(f"{site}/main", source)), make.routes(f"{site}/main", make.to(f"{site}/x")),
            make.cluster(f"{site}/x", source), make.endpoints(f"{site}/x", world.backends.http[SITES[site]])]


@scenario("F-11, S-01, S-04", AGGREGATED, caches=("linear",), relay_only="the control plane has no rules")
def envoys_outside_the_cluster(world, dialect):
    source, ports = dialect.source(), {site: free_port() for site in SITES}
    world.control_plane.apply(put=[one for site in SITES for one in resources(world, source, site, ports[site])])
    files, trusted = credentials(world)
    address = f"127.0.0.1:{free_port()}"
    text = written("outside.yaml", {
        "0.0.0.0:15443": address, "/etc/distributary/relay.pem": files["relay", "certificate"],
        "/etc/distributary/relay.key": files["relay", "key"], "/etc/distributary/clients.pem": trusted,
        "control-plane.example.svc:18000": world.control_plane.address, "/var/lib/distributary": world.logs / "snapshots"})
    (world.logs / "snapshots").mkdir()
    relay = world.start_relay(None, address=address, text=text, listens=True)

    def envoy(node, cluster, shown):
        shows = ["--config", relay.config, "--ca", files["relay", "certificate"], "--cert", files[shown, "certificate"], "--key", files[shown, "key"]]
        printed = relay.bootstrap("envoy", "--dialect", dialect.name.removeprefix("ads-"), "--node-id", node, "--node-cluster", cluster,
                                  "--admin-port", "0", *shows)
        return world.envoy(dialect, node=node, text=printed)

    envoys = {site: envoy(f"{site}-1", site, site).ready() for site in SITES}
    for site, backend in SITES.items():
        world.traffic(port=ports[site]).reaches(backend)
        if (clusters := set(envoys[site].clusters())) != {f"{site}/x"}:
            raise Failed(f"{site} has the clusters {clusters}")
    pretender = envoy("pretender", "oslo", "paris")
    eventually("who claims to be of another site has asked", lambda: pretender.stat("cluster_manager.cds.update_attempt") > 0)
    world.control_plane.apply(put=[make.endpoints("paris/x", world.backends.http["c"])])
    world.traffics[0].reaches("c")
    if pretender.clusters():
        raise Failed(f"the pretender has {set(pretender.clusters())}")
