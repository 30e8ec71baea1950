# SPDX-License-Identifier: Apache-2.0
"""The other resource types, one after the other, each with real traffic that depends on it."""

import ssl
import time

from peers import resources as make
from peers.control_plane import certificate
from peers.envoy import ADS_DELTA, ADS_SOTW, AGGREGATED, EVERY, STREAMS_DELTA, UNIFIED_SOTW
from peers.process import Failed, eventually, free_port
from peers.traffic import ask
from scenario import scenario


def clusters(world, source, names="ab"):
    """A cluster for each backend, with the backend's name."""
    return [part for name in names
            for part in (make.cluster(name, source), make.endpoints(name, world.backends.http[name]))]


def shown(port):
    """The certificate that a listener shows."""
    try:
        return ssl.get_server_certificate(("127.0.0.1", port), timeout=5).strip()
    except OSError:
        return None


@scenario("A-T1 SDS", EVERY)
def secrets(world, dialect):
    """A listener's certificate comes over SDS and is exchanged while connections are made."""
    source = dialect.source()
    tls = {"name": "tls", "typed_config": {
        "@type": make.PREFIX + "envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext",
        "common_tls_context": {"tls_certificate_sds_secret_configs": [{"name": "web", "sds_config": source}]}}}
    pairs = [certificate(world.programs.go, f"{name}.test") for name in ("first", "second")]
    world.control_plane.apply(put=[
        *clusters(world, source), make.routes("main", make.to("a")), make.secret("web", pairs[0]),
        make.listener("web", world.port, make.rds("main", source), transport_socket=tls),
    ])
    world.through_relay().envoy(dialect).ready()
    eventually("the first certificate is shown", lambda: shown(world.port) == pairs[0]["certificate"].strip())
    world.control_plane.apply(put=[make.secret("web", pairs[1])])
    eventually("the second certificate is shown", lambda: shown(world.port) == pairs[1]["certificate"].strip())


@scenario("B-18", (ADS_SOTW, UNIFIED_SOTW), where="unified-ads-sotw/linear",
          relay_only="a linear cache sends only the secret that changed, and Envoy rejects that")
def several_secrets(world, dialect):
    """Two secrets on one stream come one after the other and change one by one; Envoy rejects nothing."""
    source = dialect.source()
    ports = {"one": world.port, "two": free_port()}

    def listener(name):
        tls = {"name": "tls", "typed_config": {
            "@type": make.PREFIX + "envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext",
            "common_tls_context": {"tls_certificate_sds_secret_configs": [{"name": name, "sds_config": source}]}}}
        return make.listener(name, ports[name], make.rds("main", source), transport_socket=tls)

    def show(name):
        pair = certificate(world.programs.go, f"{name}.test")
        put = [make.secret(name, pair)]
        world.control_plane.apply(put=put if shown(ports[name]) else [*put, listener(name)])
        eventually(f"secret {name} is shown", lambda: shown(ports[name]) == pair["certificate"].strip())

    world.control_plane.apply(put=[*clusters(world, source), make.routes("main", make.to("a"))])
    world.through_relay().envoy(dialect).ready()
    for name in ("one", "two", "one", "two", "two"):
        show(name)


@scenario("A-T1 SRDS, B-16, D-01", AGGREGATED, where="sotw/linear",
          relay_only="a linear cache sends only the scope that changed, and Envoy takes the others as deleted")
def scoped_routes(world, dialect):
    """The header selects the scope; scopes are added, changed and removed."""
    source = dialect.source()
    world.control_plane.apply(put=[
        *clusters(world, source), make.routes("to-a", make.to("a")), make.routes("to-b", make.to("b")),
        make.scope("one", "one", "to-a"), make.scope("two", "two", "to-b"),
        make.listener("web", world.port, make.scoped("tenant", source)),
    ])
    world.through_relay().envoy(dialect).ready()
    one, two = (world.traffic(headers={"tenant": tenant}) for tenant in ("one", "two"))
    one.reaches("a")
    two.reaches("b")
    world.control_plane.apply(put=[make.scope("three", "three", "to-b")])
    eventually("scope three", lambda: ask(world.port, headers={"tenant": "three"})[0] == "b")
    world.control_plane.apply(put=[make.scope("one", "one", "to-b")])
    one.reaches("b")
    world.control_plane.apply(remove=[("srds", "three")])
    eventually("scope three is gone", lambda: ask(world.port, headers={"tenant": "three"})[1])
    two.reaches("b")


@scenario("A-T1 RTDS", AGGREGATED)
def runtime(world, dialect):
    """A runtime value moves traffic from one cluster to the other and back."""
    source = dialect.source()
    share = {"runtime_fraction": {"runtime_key": "to.b", "default_value": {"numerator": 0}}}
    world.control_plane.apply(put=[
        *clusters(world, source), make.routes("main", make.to("b", **share), make.to("a")),
        make.listener("web", world.port, make.rds("main", source)), make.runtime("shares", **{"to.b": 0}),
    ])
    world.through_relay().envoy(dialect, layers=["shares"]).ready()
    traffic = world.traffic()
    traffic.reaches("a")
    world.control_plane.apply(put=[make.runtime("shares", **{"to.b": 100})])
    traffic.reaches("b")
    world.control_plane.apply(put=[make.runtime("shares", **{"to.b": 0})])
    traffic.reaches("a")


@scenario("A-T1 ECDS, C-27", AGGREGATED)
def extension_config(world, dialect):
    """A filter's configuration comes over ECDS and is exchanged under traffic."""
    source = dialect.source()
    mutation = make.FILTERS + "header_mutation.v3.HeaderMutation"
    marker = {"name": "marker", "config_discovery": {"config_source": source, "type_urls": [mutation]}}

    def marking(value):
        append = {"header": {"key": "marked", "value": value}, "append_action": "OVERWRITE_IF_EXISTS_OR_ADD"}
        return {"@type": make.TYPES["ecds"], "name": "marker", "typed_config": {
            "@type": mutation, "mutations": {"response_mutations": [{"append": append}]}}}

    world.control_plane.apply(put=[
        *clusters(world, source), make.routes("main", make.to("a")), marking("early"),
        make.listener("web", world.port, make.rds("main", source), filters=(marker, make.ROUTER)),
    ])
    world.through_relay().envoy(dialect).ready()
    traffic = world.traffic()
    traffic.reaches("a")
    for value in ("early", "late"):
        world.control_plane.apply(put=[marking(value)])
        eventually(f"answers are marked {value}", lambda: ask(world.port)[2].get("marked") == value)
    traffic.reaches("a")


def by_header(world, source):
    """A listener that takes the cluster from a header, and requests it if Envoy does not have it."""
    demand = {"name": "on-demand", "typed_config": {
        "@type": make.FILTERS + "on_demand.v3.OnDemand", "odcds": {"source": source, "timeout": "10s"}}}
    return [make.routes("main", {"match": {"prefix": "/"}, "route": {"cluster_header": "cluster"}}),
            make.listener("web", world.port, make.rds("main", source), filters=(demand, make.ROUTER))]


@scenario("A-T1 CDS on demand, M-03, C-06", (ADS_SOTW, ADS_DELTA, STREAMS_DELTA), caches=("linear",))
def clusters_on_demand(world, dialect):
    """A request names a cluster that Envoy does not know; Envoy subscribes to it, and the request waits meanwhile."""
    source, http = dialect.source(), world.backends.http
    world.control_plane.apply(put=[*clusters(world, source, "a"), *by_header(world, source)], lazy=clusters(world, source, "bc"))
    world.through_relay().envoy(dialect).ready()
    known = world.traffic(headers={"cluster": "a"})
    known.reaches("a")
    for name in "bc":
        world.traffic(headers={"cluster": name}).reaches(name)
    world.control_plane.apply(put=[make.endpoints("b", http["c"]), make.endpoints("c", http["b"])])
    world.traffics[1].reaches("c")
    world.traffics[2].reaches("b")
    known.reaches("a")


@scenario("A-T1 CDS on demand, E-14, E-15", (ADS_DELTA,), caches=("linear",))
def clusters_on_demand_for_everybody(world, dialect):
    """Clusters become part of the wildcard when the first one asks for them. One after the other, so that the relay
    wants nothing by name in between, and no request may wait for a back-off."""
    source = dialect.source()
    world.control_plane.apply(put=[*clusters(world, source, "a"), *by_header(world, source)])
    world.through_relay().envoy(dialect).ready()
    world.traffic(headers={"cluster": "a"}).reaches("a")
    began = time.monotonic()
    for name in ("one", "two", "three", "four", "five", "six"):
        traffic = world.traffic(headers={"cluster": name})
        world.control_plane.wait_for_request("cds", name)
        world.control_plane.apply(put=[make.cluster(name, source), make.endpoints(name, world.backends.http["b"])])
        traffic.reaches("b")
        traffic.stop()
    if (took := time.monotonic() - began) > 4:
        raise Failed(f"six clusters on demand took {took:.1f} s")


@scenario("A-T1 VHDS, C-21, M-03", (ADS_DELTA, STREAMS_DELTA), caches=("linear",))
def virtual_hosts(world, dialect):
    """Virtual hosts come unrequested, or on demand when a request names one, and change."""
    source = dialect.source()
    demand = {"name": "on-demand", "typed_config": {"@type": make.FILTERS + "on_demand.v3.OnDemand"}}

    def host(domain, target):
        return {"@type": make.TYPES["vhds"], "name": f"main/{domain}", "domains": [domain], "routes": [make.to(target)]}

    hostless = {"@type": make.TYPES["rds"], "name": "main", "vhds": {"config_source": source}}
    world.control_plane.apply(
        put=[*clusters(world, source, "abc"), hostless, host("known.test", "a"),
             make.listener("web", world.port, make.rds("main", source), filters=(demand, make.ROUTER))],
        lazy=[host("later.test", "b")],
    )
    world.through_relay().envoy(dialect).ready()
    known = world.traffic(headers={"host": "known.test"})
    known.reaches("a")
    world.traffic(headers={"host": "later.test"}).reaches("b")
    world.control_plane.apply(put=[host("known.test", "c")])
    known.reaches("c")


@scenario("C-21, M-03", (ADS_DELTA, STREAMS_DELTA), caches=("linear",), upstreams=("sotw",),
          relay_only="it speaks delta to an Envoy that asks it directly")
def virtual_hosts_need_delta(world, dialect):
    """With a SotW upstream, a request for a host that Envoy does not know is still answered at once."""
    source = dialect.source()
    demand = {"name": "on-demand", "typed_config": {"@type": make.FILTERS + "on_demand.v3.OnDemand"}}
    known = {"name": "known", "domains": ["known.test"], "routes": [make.to("a")]}
    other = {"@type": make.TYPES["vhds"], "name": "main/other.test", "domains": ["other.test"], "routes": [make.to("b")]}
    # The wait for the first virtual host ends only by its time limit.
    hosts = {"config_source": {**source, "initial_fetch_timeout": "1s"}}
    world.control_plane.apply(put=[
        *clusters(world, source), {"@type": make.TYPES["rds"], "name": "main", "virtual_hosts": [known], "vhds": hosts}, other,
        make.listener("web", world.port, make.rds("main", source), filters=(demand, make.ROUTER))])
    world.through_relay().envoy(dialect).ready()
    world.traffic(headers={"host": "known.test"}).reaches("a")
    began = time.monotonic()
    _, error, _ = ask(world.port, headers={"host": "other.test"})
    took = time.monotonic() - began
    if not (error or "").startswith("status 404") or took > 3:
        raise Failed(f"a request for an unknown host: {error} after {took:.1f} s instead of 404 at once")
    if "::unserved::vhds::" not in (page := world.relay.page("/clusters")):
        raise Failed(f"/clusters does not show that virtual hosts are not requested: {page}")
