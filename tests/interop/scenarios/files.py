# SPDX-License-Identifier: Apache-2.0
"""Configuration from files: as the first source, as a last resort, and as Kubernetes mounts it."""

import json
import urllib.request
from pathlib import Path

from peers.envoy import AGGREGATED
from peers.process import eventually
from scenario import scenario
from scenarios.envoy_http import single_cluster

RELAY = "the files are the relay's"
QUICKSTART = Path(__file__).resolve().parents[3] / "config" / "quickstart"


def place(path, resources):
    """Writes to another path and moves the file into place."""
    text = resources if isinstance(resources, str) else json.dumps(resources)
    other = path.with_name(f".{path.name}.new")
    other.write_text(text)
    other.rename(path)


def body(port, path="/"):
    """The answer to a request through the proxy, or nothing."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
            return answer.read().decode()
    except OSError:
        return ""


def sources(*uris):
    return "upstream:\n  xds_servers:\n" + "".join(f"    - server_uri: '{uri}'\n" for uri in uris)


@scenario("G-03, G-08, G-19, I-05, I-06", AGGREGATED, caches=("linear",), relay_only=RELAY)
def a_file_behind_a_dead_control_plane(world, dialect):
    """The control plane dies, a relay that never reached it serves the file, and uses the control plane once it is back."""
    file = world.logs / "last-resort.json"
    place(file, single_cluster(world, dialect, "b"))
    config = sources(f"http://{world.control_plane.address}", f"file://{file}")
    world.control_plane.apply(put=single_cluster(world, dialect, "a"))
    relay = world.start_relay(None, text=config)
    world.envoy(dialect).ready()
    traffic = world.traffic()
    traffic.reaches("a")
    world.control_plane.stop()
    traffic.reaches("a")
    relay.drain()
    world.start_relay(None, text=config, address=relay.address)
    traffic.reaches("b")
    place(file, "resources: [")
    world.new_control_plane(world.control_plane.address).apply(put=single_cluster(world, dialect, "c"))
    traffic.reaches("c")


@scenario("I-02, I-05, I-06", AGGREGATED, caches=("linear",), relay_only=RELAY)
def a_file_is_edited(world, dialect):
    """A file is moved into place, written in place, torn, removed: Envoy follows only good content."""
    file = world.logs / "edited.json"
    place(file, single_cluster(world, dialect, "a"))
    world.start_relay(None, text=sources(f"file://{file}"))
    world.envoy(dialect).ready()
    traffic = world.traffic()
    traffic.reaches("a")
    place(file, single_cluster(world, dialect, "b"))
    traffic.reaches("b")
    text = json.dumps(single_cluster(world, dialect, "c"))
    file.write_text(text[: len(text) // 2])
    eventually("the fault is counted", lambda: f'file_errors_total{{server="file://{file}"}} 1' in world.relay.page("/metrics"))
    traffic.reaches("b")
    file.write_text(text)
    traffic.reaches("c")
    file.unlink()
    eventually("the fault is counted", lambda: f'file_errors_total{{server="file://{file}"}} 2' in world.relay.page("/metrics"))
    traffic.reaches("c")
    place(file, single_cluster(world, dialect, "a"))
    traffic.reaches("a")


@scenario("I-03, I-04", AGGREGATED, caches=("linear",), relay_only=RELAY)
def a_config_map_is_swapped(world, dialect):
    """A directory of symlinks, as Kubernetes mounts one, whose content is swapped again and again."""
    mounted = world.logs / f"mounted-{dialect.name}"
    mounted.mkdir()

    def swap(version, backend):
        listener, *rest = reversed(single_cluster(world, dialect, backend))
        content = mounted / f"..{version}"
        content.mkdir()
        (content / "listener.yaml").write_text(json.dumps([listener]))
        (content / "rest.yaml").write_text(json.dumps(rest))
        (mounted / "..data_tmp").symlink_to(content.name)
        (mounted / "..data_tmp").rename(mounted / "..data")

    swap(1, "a")
    for name in ("listener.yaml", "rest.yaml"):
        (mounted / name).symlink_to(f"..data/{name}")
    world.start_relay(None, text=sources(f"file://{mounted}"))
    world.envoy(dialect).ready()
    traffic = world.traffic()
    traffic.reaches("a")
    for version, backend in enumerate("bcab", 2):
        swap(version, backend)
        traffic.reaches(backend)


@scenario("I-01, I-02", AGGREGATED, caches=("linear",), relay_only=RELAY)
def the_quick_start(world, dialect):
    """The README's quick start: the example, an Envoy with the printed bootstrap, and an edit that arrives."""
    folder = world.logs / f"quickstart-{dialect.name}"
    folder.mkdir()
    for file in QUICKSTART.glob("*.yaml"):
        (folder / file.name).write_text(file.read_text().replace("port_value: 10000", f"port_value: {world.port}"))
    relay = world.start_relay(None, text=sources(folder))
    endpoints = folder / "endpoints.yaml"
    endpoints.write_text(endpoints.read_text().replace("port_value: 9901", f"port_value: {relay.admin.rpartition(':')[2]}"))
    text = relay.bootstrap("envoy", "--dialect", dialect.name.removeprefix("ads-"), "--node-id", "quick", "--admin-port", "0")
    world.envoy(dialect, node="quick", text=text).ready()
    eventually("a greeting", lambda: body(world.port) == "hello\n")
    eventually("the relay through Envoy", lambda: "distributary_views" in body(world.port, "/relay/metrics"))
    routes = folder / "routes.yaml"
    routes.write_text(routes.read_text().replace("hello", "good morning"))
    eventually("the edit", lambda: body(world.port) == "good morning\n")
