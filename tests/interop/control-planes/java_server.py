# SPDX-License-Identifier: Apache-2.0
"""The relay in front of java-control-plane: two groups of Envoys, each with a direct one and one behind the relay, under traffic.

python3 java_server.py RELAY ENVOY SERVER_CLASSPATH LOGS [DIALECT...]
"""

import http.server
import json
import sys
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from peers import resources as xds  # noqa: E402
from peers.envoy import ADS_DELTA, ADS_SOTW, Envoy, bootstrap  # noqa: E402
from peers.process import Failed, Talker, end_all, eventually, free_port  # noqa: E402
from peers.relay import Relay  # noqa: E402

GROUPS = ("blue", "green")
WAYS = ("direct", "relayed")
WITHIN = 60.0


def backend(name):
    """An HTTP server that answers with its name; returns its port."""
    class Answer(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("content-length", str(len(name)))
            self.end_headers()
            self.wfile.write(name.encode())

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_port


def ask(port, path="/"):
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=2) as answer:
            return answer.read().decode()
    except urllib.error.HTTPError as error:
        return f"{error.code}"
    except OSError:
        return "nobody"


class World:
    """Both groups, in one dialect of the relay and of all Envoys."""

    def __init__(self, programs, logs, dialect):
        self.relay_program, self.envoy_program, self.classpath = programs
        self.logs, self.dialect = logs, dialect
        self.server_port, self.version = free_port(), 0
        self.ways = ADS_SOTW if dialect == "sotw" else ADS_DELTA
        self.backends = {name: backend(name) for name in ("one", "two", "three")}
        self.ports, self.envoys, self.held = {}, {}, {}
        self.start_server()
        self.relay = None
        self.start_relay(f"127.0.0.1:{free_port()}")

    def start_relay(self, address):
        text = (f"upstream: {{ xds_servers: [{{ server_uri: 'http://127.0.0.1:{self.server_port}', transport: {self.dialect} }}] }}\n"
                "classes:\n  - key: [cluster]\n"
                "guard: { within: never }\n")
        self.relay = Relay(self.relay_program, self.logs, None, address=address, text=text, ready=False)

    def start_server(self):
        self.server = Talker("server", ["java", "-cp", self.classpath, "Server", self.server_port], self.logs)
        self.server.wait_for("it listens", lambda said: said["event"] == "listening", within=60)
        for group, told in self.held.items():
            self.set(group, told)

    def set(self, group, told):
        self.held[group] = told
        self.version += 1
        self.server.tell({"group": group, "version": f"{self.version}", "resources": told})

    def join(self, group):
        """A direct Envoy, which sends its node with each request as by default, and one behind the relay."""
        for way, server in (("direct", f"127.0.0.1:{self.server_port}"), ("relayed", self.relay.address)):
            node = f"{group}-{way}"
            boot = bootstrap(self.ways, server, {"id": node, "cluster": f"{group}.{way}"}, ())
            if way == "direct":
                boot["dynamic_resources"]["ads_config"].pop("set_node_on_first_message_only", None)
            self.envoys[group, way] = Envoy(self.envoy_program, self.logs, self.ways, server, node, text=json.dumps(boot))

    def content(self, mark, name, port, extra=(), more_listeners=()):
        """Everything is called after a mark: cluster, endpoints, route and listener."""
        return [xds.cluster(f"c-{mark}"), xds.endpoints(f"c-{mark}", self.backends[name]),
                xds.routes(f"r-{mark}", xds.to(f"c-{mark}")), xds.listener(f"l-{mark}", port, xds.rds(f"r-{mark}")),
                *extra, *more_listeners]

    def publish(self, group, mark, name, **more):
        """The next snapshot of a group, for both its Envoys, each with a port of its own."""
        for way in WAYS:
            port = self.ports.setdefault((group, way), free_port())
            self.set(f"{group}.{way}", self.content(mark, name, port, **more))
        return time.monotonic()

    def reach(self, what, group, name, began, gone=(), ways=WAYS):
        """Waits until both Envoys of a group answer with a name and hold nothing of what is gone; returns how long each took."""
        took = {}

        def done(way):
            if way in took:
                return True
            envoy = self.envoys[group, way]
            if ask(self.ports[group, way]) != name:
                return False
            held = json.loads(envoy.get("/config_dump?include_eds", "{}") or "{}")
            if any(f'"{one}"' in json.dumps(held) for one in gone):
                return False
            took[way] = time.monotonic() - began
            return True

        try:
            eventually(what, lambda: all([done(way) for way in ways]), WITHIN)
        except Failed as failed:
            raise Failed(f"{self.dialect}, {group}: {failed}; done: {took}") from None
        print(f"  {self.dialect} {group}: {what}: " + ", ".join(f"{way} {took[way]:.2f} s" for way in ways), flush=True)
        return took


def play(world):
    for group in GROUPS:
        began = world.publish(group, "a", "one")
        world.join(group)
        world.reach("start", group, "one", began)
    names = lambda mark: [f"{kind}-{mark}" for kind in "crl"]
    for group in GROUPS:
        world.reach("other endpoints", group, "two", world.publish(group, "a", "two"))
        world.reach("everything is renamed", group, "three", world.publish(group, "b", "three"), gone=names("a"))
        world.reach("and again", group, "one", world.publish(group, "c", "one"), gone=names("b"))
        extra = [xds.cluster("c-more"), xds.endpoints("c-more", world.backends["two"])]
        world.reach("a cluster comes", group, "two", world.publish(group, "c", "two", extra=extra))
        world.reach("it goes", group, "one", world.publish(group, "c", "one"), gone=["c-more"])
    # A listener on an address that nobody can have is rejected; the rest changes, and it is repaired.
    group = "blue"
    bad = [{**xds.listener("l-bad", 1, xds.rds("r-c")), "address": {"socket_address": {"address": "192.0.2.1", "port_value": 1}}}]
    start = len(world.server.lines)
    world.reach("beside a rejected listener", group, "three", world.publish(group, "c", "three", more_listeners=bad))
    world.server.wait_for("the direct Envoy rejects", lambda said: said["event"] == "rejected" and "blue-direct" in said["detail"], start)
    world.server.wait_for("the relay says that its Envoy rejects",
                          lambda said: said["event"] == "rejected" and "blue-direct" not in said["detail"], start, 30)
    # Over delta, a direct Envoy is not told that a listener goes which it rejected, nor what has gone while the control plane was away.
    ways = ("relayed",) if world.dialect == "delta" else WAYS
    world.reach("it is repaired", group, "one", world.publish(group, "c", "one"), gone=["l-bad"], ways=ways)
    world.reach("the other group", "green", "one", time.monotonic())
    # The control plane comes back with other names.
    world.server.stop()
    for group in GROUPS:
        for way in ("direct", "relayed"):
            world.held[f"{group}.{way}"] = world.content("d", "two", world.ports[group, way])
    began = time.monotonic()
    world.start_server()
    for group in GROUPS:
        world.reach("the control plane comes back with other names", group, "two", began, gone=names("c"), ways=ways)
        world.reach("and goes on", group, "three", world.publish(group, "d", "three"), ways=ways)
    # It comes back with less: a cluster that was there before is gone.
    extra = [xds.cluster("c-more"), xds.endpoints("c-more", world.backends["two"])]
    world.reach("a cluster comes", "blue", "one", world.publish("blue", "d", "one", extra=extra), ways=ways)
    world.server.stop()
    for way in ("direct", "relayed"):
        world.held[f"blue.{way}"] = world.content("d", "two", world.ports["blue", way])
    began = time.monotonic()
    world.start_server()
    world.reach("the control plane comes back without it", "blue", "two", began, gone=["c-more"], ways=ways)
    # The relay comes back, and everything has other names.
    address = world.relay.address
    world.relay.stop()
    began = [world.publish(group, "e", "one") for group in GROUPS][0]
    world.start_relay(address)
    for group in GROUPS:
        world.reach("the relay comes back to other names", group, "one", began, gone=names("d"), ways=ways)
    # It comes back while the endpoints of one cluster are missing. Over state of the world the control plane says nothing of any endpoints then,
    # not to a direct Envoy either.
    late = [xds.cluster("c-late")]
    for group in GROUPS:
        world.publish(group, "e", "one", extra=late)
        known = lambda: '"c-late"' in (world.envoys[group, "relayed"].get("/config_dump", "") or "")
        eventually("a cluster without endpoints comes", known, WITHIN)
    world.relay.stop()
    began = [world.publish(group, "e", "two", extra=late) for group in GROUPS][0]
    world.start_relay(address)
    for group in GROUPS:
        world.reach("the relay comes back while endpoints are missing", group, "two", began, ways=("relayed",))
    late.append(xds.endpoints("c-late", world.backends["one"]))
    for group in GROUPS:
        world.reach("they come", group, "three", world.publish(group, "e", "three", extra=late), ways=("relayed",))


def main():
    relay, envoy, classpath, logs, *dialects = sys.argv[1:]
    for dialect in dialects or ("sotw", "delta"):
        own = Path(logs) / dialect
        own.mkdir(parents=True, exist_ok=True)
        try:
            play(World((relay, envoy, classpath), own, dialect))
            print(f"{dialect}: passed", flush=True)
        finally:
            end_all()


if __name__ == "__main__":
    try:
        main()
    except Failed as failed:
        sys.exit(f"failed: {failed}")
