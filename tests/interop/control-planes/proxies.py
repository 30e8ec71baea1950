# SPDX-License-Identifier: Apache-2.0
"""Envoys in network namespaces of their own, and a comparison of the resources that two of them hold."""

import copy
import http.client
import json
import socket
import sys
import threading
import time
from pathlib import Path

from peers.process import POLL, Failed, Process, eventually

NAMESPACE = Path(__file__).parent / "namespace.py"
ADMIN = 19000
# Fields that differ between proxies: when something came, and under which version. The relay has versions of its own.
PASSING = {"version_info", "last_updated", "last_update_attempt"}


def alone(command, doors=(), occupied=()):
    """The command in a network namespace of its own; see namespace.py."""
    options = [part for path, port in doors for part in ("--door", f"{path}={port}")]
    options += [part for port in occupied for part in ("--occupied", port)]
    return [sys.executable, NAMESPACE, *options, "--", *command]


class OverUnix(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path):
        super().__init__("localhost", timeout=10)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self.path))


def ask(path, url):
    """The body of a page behind a door, or nothing if there is no answer yet."""
    connection = OverUnix(path)
    try:
        connection.request("GET", url)
        return connection.getresponse().read().decode()
    except (OSError, http.client.HTTPException):
        return ""
    finally:
        connection.close()


class Proxy(Process):
    """An Envoy with a given bootstrap, whose admin page is behind a door; `around` is a program that starts it."""

    def __init__(self, name, envoy, logs, doors, bootstrap, occupied=(), around=()):
        self.door = doors / f"{name}.admin"
        file = logs / f"{name}.json"
        file.write_text(json.dumps({**bootstrap, "admin": {"address": {"socket_address": {"address": "127.0.0.1", "port_value": ADMIN}}}}))
        command = [envoy, "-c", file, "--disable-hot-restart", "--concurrency", "1", "-l", "info", "--drain-time-s", "1"]
        super().__init__(name, alone([*around, *command], [(self.door, ADMIN)], occupied), logs)

    def ready(self):
        eventually(f"{self.name} is ready", lambda: self.must_live() and ask(self.door, "/ready").startswith("LIVE"), 30)
        return self

    def holds(self):
        """Every resource that it has over xDS: {(kind, name): what it is}."""
        page = ask(self.door, "/config_dump?include_eds")
        return resources(json.loads(page)) if page else {}

    def stat(self, name):
        page = ask(self.door, f"/stats?filter=^{name.replace('.', '[.]')}$")
        return int(page.rpartition(" ")[2]) if page else 0


def resources(dump):
    found = {}
    bootstrap = next(json.dumps(section) for section in dump["configs"] if "bootstrap" in section)
    for section in dump["configs"]:
        for key, entries in section.items():
            if key.startswith("dynamic_") or key == "ecds_filters":
                for entry in entries:
                    name = name_of(entry)
                    if "draining_state" in entry and len(entry) == 2:
                        continue  # It is gone; what is left ends by itself.
                    if "secrets" in key and json.dumps(name) in bootstrap:
                        continue  # From a file, for the connection to the server.
                    found[key.removeprefix("dynamic_"), name] = lasting(entry)
    return found


def name_of(entry):
    if name := entry.get("name"):
        return name
    inner = next(value for key, value in entry.items() if key not in PASSING and isinstance(value, dict))
    # A listener that was never accepted has a name only in its rejected version.
    return inner.get("name") or inner.get("cluster_name") or inner["failed_configuration"]["name"]


def lasting(value):
    """The value without the fields that differ between proxies, and with endpoints in a fixed order."""
    if isinstance(value, dict):
        return {key: lasting(inner) for key, inner in value.items() if key not in PASSING and key != "draining_state"}
    if isinstance(value, list):
        return sorted((lasting(inner) for inner in value), key=lambda one: json.dumps(one, sort_keys=True)) \
            if any(isinstance(inner, dict) and "endpoint" in inner for inner in value) else [lasting(inner) for inner in value]
    return value


class Twins:
    """Two Envoys with the same bootstrap: one connects to the control plane, the other to the relay."""

    def __init__(self, name, start, bootstrap, direct, relayed):
        """`start` starts a proxy from a name and a bootstrap; the others are functions that put their server into a bootstrap."""
        self.name = name
        self.direct = start(f"{name}-direct", direct(copy.deepcopy(bootstrap)))
        relayed = relayed(copy.deepcopy(bootstrap))
        self.relayed = start(f"{name}-relayed", relayed)
        # Over SotW a list without what was rejected is a good update, by which Envoy forgets the error (K-37).
        self.forgets = relayed["dynamic_resources"]["ads_config"]["api_type"] == "GRPC"
        self.pair = (self.direct, self.relayed)
        self.steps = []

    def ready(self):
        for proxy in self.pair:
            proxy.ready()
        return self

    def see(self, what, wanted, began, within=30):
        """Waits until both hold the wanted texts, records when each did, and compares all resources of both."""
        moments = [None, None]

        def watch(at, proxy):
            deadline = time.monotonic() + within
            while time.monotonic() < deadline and not moments[at]:
                if wanted(proxy.holds()):
                    moments[at] = time.monotonic() - began
                time.sleep(POLL)

        threads = [threading.Thread(target=watch, args=pair) for pair in enumerate(self.pair)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if None in moments:
            late = " and ".join(proxy.name for proxy, moment in zip(self.pair, moments) if moment is None)
            raise Failed(f"{what}: not within {within} s at {late}; differences: {self.differences()}")
        self.steps.append((what, *moments))
        self.alike(what)

    def alike(self, what, within=10):
        """Both hold the same, resource by resource."""
        try:
            eventually("both hold the same", lambda: not self.differences(), within)
        except Failed:
            raise Failed(f"{self.name}, {what}: {self.differences()}") from None

    def differences(self):
        """Where they differ: one line for each resource."""
        direct, relayed = self.direct.holds(), self.relayed.holds()
        lines = []
        for key in sorted(set(direct) | set(relayed)):
            if key not in relayed and set(direct[key]) <= {"name", "error_state"} and self.forgets:
                continue
            if direct.get(key) != relayed.get(key):
                lines.append(f"{key}: direct {json.dumps(direct.get(key))[:600]}, relayed {json.dumps(relayed.get(key))[:600]}")
        return lines or (["neither holds anything"] if not direct else [])
