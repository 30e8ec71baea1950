# SPDX-License-Identifier: Apache-2.0
"""Envoy rejects resources with private keys in them: its words are the whole message, and the relay keeps no byte of the key."""

import json
import os
import urllib.request

from peers import resources as make
from peers.collector import Collector
from peers.control_plane import certificate
from peers.envoy import AGGREGATED
from peers.process import Failed, eventually
from peers.relay import configuration
from scenario import scenario
from scenarios.envoy_http import single_cluster
from scenarios.envoy_nack import chain_of

PAGES = ("/nacks", "/clients", "/clients/envoy", "/resources", "/resources/keyed", "/resources/inline", "/holds", "/views", "/config_dump")


@scenario("S-12", AGGREGATED, caches=("snapshot",), relay_only="it is about what the relay keeps")
def a_rejected_key(world, dialect):
    """A secret and a listener with an inline key break a constraint. The key is in no log line (debug), no admin page, not in CSDS, in nothing
    that the control plane or a collector of traces and metrics hears; what is wrong is. A snapshot has the listener, and no words."""
    world.expect_rejections()
    collector = Collector()
    source, key = dialect.source(), certificate(world.programs.go, "keyed.test")["key"]
    broken = {"certificate_chain": {}, "private_key": {"inline_string": key}}
    listener = make.listener("web", world.port, make.rds("main", source))
    keyed = {**listener, "filter_chains": [chain_of(listener["filter_chains"][0], "keyed", source)]}
    inline = {"@type": make.PREFIX + "envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext",
              "common_tls_context": {"tls_certificates": [broken]}}
    world.control_plane.apply(put=[*single_cluster(world, dialect, "a")[:-1], keyed])
    text = configuration(world.xds, world.upstream or "delta") + f"logging: {{ level: debug }}\nsnapshot: {{ dir: '{world.logs}', interval: 100ms }}\n"
    relay = world.start_relay(world.xds, text=text, environment=os.environ | collector.environment())
    envoy = world.envoy(dialect, node="envoy")
    eventually("Envoy has the listener", lambda: envoy.stat("listener_manager.lds.update_success"))
    world.control_plane.apply(put=[
        {"@type": make.TYPES["sds"], "name": "keyed", "tls_certificate": broken},
        make.listener("inline", world.port + 1, make.rds("main", source), transport_socket={"name": "tls", "typed_config": inline}),
    ])
    eventually("Envoy quotes a key", lambda: quotes(envoy.log, key))
    eventually("the control plane hears of them", lambda: len(world.control_plane.complaints()) > 1)
    traces, metrics = "/v1/traces", "/v1/metrics"
    eventually("the rejection is traced", lambda: "were rejected" in collector.text(traces))
    eventually("the rejection is measured", lambda: "reject" in collector.text(metrics))
    places = {"the log": relay.log.read_text(), "the control plane": "\n".join(world.control_plane.errors())}
    places |= {page: relay.page(page) for page in PAGES} | {path: collector.text(path) for path in (traces, metrics)}
    places["CSDS"] = statuses(relay)
    for place, found in places.items():
        if has(found, key):
            raise Failed(f"the key is in {place}: {found}")
    for place in ("/nacks", "CSDS"):
        if "ValidationError" not in places[place]:
            raise Failed(f"nobody sees what is wrong in {place}: {places[place]}")
    eventually("the listener is in the snapshot", lambda: relay.snapshot_has(world.logs, "lds", "inline"))
    snapshot = b"".join(file.read_bytes() for file in world.logs.glob("*.snapshot")).decode(errors="replace")
    if snapshot.count(key.splitlines()[1]) != 1 or "ValidationError" in snapshot:
        raise Failed("the snapshot has more than the content of the listener")


def statuses(relay):
    """What CSDS says of the clients."""
    question = {"node_matchers": [{"node_id": {"exact": "envoy"}}]}
    request = urllib.request.Request(
        f"http://{relay.admin}/v3/discovery:client_status", json.dumps(question).encode(), {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=5) as answer:
        return answer.read().decode()


def quotes(log, key):
    return has(log.read_text(), key)


def has(text, key):
    """Whether any line of the key is in a text, or a part of one."""
    lines = [line for line in key.splitlines() if line and "-----" not in line]
    return any(line[at:at + 12] in text for line in lines for at in range(0, len(line) - 11, 4))
