# SPDX-License-Identifier: Apache-2.0
"""One scenario's world: its peers, none of which outlives it."""

import subprocess

from peers import control_plane, envoy, grpc_clients, traffic
from peers.process import Failed, end_all, free_port
from peers.relay import Relay


class World:
    """Peers start on demand. `xds` is the address that clients use: the relay, or with --direct the control plane
    itself, which shows whether the relay or a peer causes a failure."""

    def __init__(self, programs, logs, cache, direct, upstream=None):
        self.programs, self.logs, self.cache, self.direct, self.upstream = programs, logs, cache, direct, upstream
        self.traffics, self.clients, self.relays = [], [], 0
        self.tolerant = self.open = False
        self.relay = None
        self.port = free_port()
        self.control_plane = self.backends = self.xds = None

    def begin(self):
        """Starts what every scenario has: a control plane without resources, and three backends."""
        self.new_control_plane()
        self.backends = control_plane.Backends(self.programs.go, self.logs, ["a", "b", "c"])
        self.xds = self.control_plane.address

    def new_control_plane(self, address=None):
        """A control plane without resources; the one before, if any, has been stopped."""
        self.control_plane = control_plane.ControlPlane(self.programs.go, self.logs, self.cache, address)
        return self.control_plane

    def another_control_plane(self, name, address=None):
        """An additional control plane, without resources yet."""
        return control_plane.ControlPlane(self.programs.go, self.logs, self.cache, address, name)

    def through_relay(self):
        """Starts the relay, unless clients connect to the control plane directly. Start clients after this."""
        if not self.direct:
            self.start_relay(self.xds)
        return self

    def start_relay(self, upstream, **more):
        """Starts a relay in front of that address, or of several by priority, and points clients at it."""
        self.relays += 1
        name = "relay" if self.relays == 1 else f"relay-{self.relays}"
        self.relay = Relay(self.programs.relay, self.logs, upstream, name=name, transport=self.upstream, **more)
        self.xds = self.relay.address
        return self.relay

    def printed(self, *arguments):
        """What the relay's program prints."""
        command = [self.programs.relay, *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True, timeout=20).stdout

    def envoy(self, dialect, node="envoy", layers=(), text=None, about=None):
        """An Envoy; `about` has the fields of its node except the id; `text` replaces the usual bootstrap, here and below."""
        return self.client(envoy.Envoy(self.programs.envoy, self.logs, dialect, self.xds, node, layers, text, about))

    def grpc_go(self, *targets, text=None):
        return self.client(grpc_clients.GrpcGo(self.programs.go, self.logs, self.xds, targets, text))

    def grpc_python(self, *targets, text=None):
        return self.client(grpc_clients.GrpcPython(self.logs, self.xds, targets, text))

    def grpc_java(self, *targets, text=None):
        return self.client(grpc_clients.GrpcJava(self.programs.java, self.logs, self.xds, targets, text))

    def grpc_js(self, *targets, text=None):
        return self.client(grpc_clients.GrpcJs(self.programs.js, self.logs, self.xds, targets, text))

    def client(self, peer):
        self.clients.append(peer)
        return peer

    def expect_rejections(self):
        """Allows clients of this scenario to reject configuration; in other scenarios that is a failure."""
        self.tolerant = True

    def expect_strangers(self):
        """Allows clients of this scenario to ask the control plane themselves; in other scenarios that is a failure."""
        self.open = True

    def traffic(self, path="/", headers=None, port=None):
        """Starts HTTP traffic through the proxy."""
        return self.watch(traffic.Http(port or self.port, path, headers))

    def watch(self, record):
        """At the end of the scenario this record must be free of failures."""
        self.traffics.append(record)
        return record

    def unbroken(self):
        for record in self.traffics:
            record.unbroken()

    def accepted_upstream(self):
        """Only the relay connects to the control plane. K-07: a client's rejection affects only that client, so the relay
        never rejects anything."""
        if self.direct:
            return
        if rejections := self.control_plane.rejections():
            raise Failed(f"the control plane got a NACK: {rejections[0]}")
        if self.open:
            return
        if strangers := {request.get("node") for request in self.control_plane.requests() if "node" in request and not request.get("relayed")}:
            raise Failed(f"clients other than the relay connected to the control plane: {strangers}")

    def accepted_downstream(self):
        for client in self.clients:
            if client.alive() and not self.tolerant and (rejected := client.rejected()):
                raise Failed(f"{client.name} rejected configuration: {rejected}")

    def finish(self):
        self.unbroken()
        self.accepted_upstream()
        self.accepted_downstream()
        if self.relay and not self.relay.alive():
            raise Failed(f"the relay ended with {self.relay.child.poll()}")

    def close(self):
        for record in self.traffics:
            record.stop()
        end_all()
