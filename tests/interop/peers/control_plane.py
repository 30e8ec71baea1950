# SPDX-License-Identifier: Apache-2.0
"""The Go program: a real control plane (go-control-plane) and the servers that answer with their name."""

import json
import re
import subprocess

from .process import Failed, Talker, free_port
from .resources import TYPES

# How a relay begins to say what its clients reject.
RELAYED = re.compile(r"\d+ of \d+ clients? \(")


class ControlPlane(Talker):
    """go-control-plane with one snapshot, with one for each node id, or with its linear caches. It listens once it has its
    first resources."""

    def __init__(self, program, logs, cache, address=None, name="control-plane"):
        self.address = address or f"127.0.0.1:{free_port()}"
        super().__init__(name, [program, "serve", "--cache", cache, "--listen", self.address], logs)
        self.commands = 0

    def apply(self, put=(), remove=(), lazy=(), tenant=""):
        """Publishes resources of a tenant and removes others ([("cds", name), ...]), as one change."""
        self.order({"tenant": tenant, "put": list(put), "lazy": list(lazy), "remove": [[TYPES[short], name] for short, name in remove]})

    def take(self, milliseconds):
        """Each response takes so long from now on."""
        self.order({"pause": milliseconds})

    def order(self, command):
        self.commands += 1
        number = self.commands
        self.tell({"id": number, **command})
        answer = self.wait_for(f"an answer to command {number}", lambda line: line.get("reply") == number)
        if answer["error"]:
            raise Failed(f"the control plane refused a resource: {answer['error']}")

    def requests(self, short=None):
        """The requests that it got so far, of one type or of all."""
        with self.news:
            return [line for line in self.lines
                    if line.get("event") == "request" and (short is None or line.get("type") == TYPES[short])]

    def responses(self, short):
        """The responses of a type that it sent so far."""
        with self.news:
            return [line for line in self.lines if line.get("event") == "response" and line.get("type") == TYPES[short]]

    def rejections(self):
        """The error texts of its clients' rejections, without what a relay says of its own clients."""
        return [said for said in self.errors() if not RELAYED.match(said)]

    def complaints(self):
        """What a relay says that its clients reject (E-24)."""
        return [said for said in self.errors() if RELAYED.match(said)]

    def errors(self):
        return [request["rejected"] for request in self.requests() if request.get("rejected")]

    def wait_for_request(self, short, name, start=0):
        """Waits until a client asks for a resource by its name."""
        return self.wait_for(
            f"a request for {short} {name}",
            lambda line: line.get("event") == "request" and line.get("type") == TYPES[short] and name in line.get("names", ()),
            start,
        )


class Secured(Talker):
    """A gRPC backend that speaks TLS, and wants a certificate of its clients."""

    def __init__(self, program, logs, name, certificate, key):
        super().__init__(f"secured-{name}", [program, "secured", name, certificate, key], logs)
        self.grpc = self.wait_for(f"backend {name}", lambda line: line.get("backend") == name)["grpc"]


class Backends(Talker):
    """Servers for HTTP and gRPC; each answers with its own name."""

    def __init__(self, program, logs, names):
        super().__init__("backends", [program, "backend", *names], logs)
        started = [self.wait_for(f"backend {name}", lambda line, name=name: line.get("backend") == name) for name in names]
        self.http = {one["backend"]: one["http"] for one in started}
        self.grpc = {one["backend"]: one["grpc"] for one in started}


def certificate(program, name, *ended):
    """A fresh self-signed certificate for a name, or one that has `ended`: {"certificate": PEM, "key": PEM}."""
    made = subprocess.run([program, "certificate", name, *ended], check=True, capture_output=True, text=True, timeout=30)
    return json.loads(made.stdout)
