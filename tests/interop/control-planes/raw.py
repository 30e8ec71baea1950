# SPDX-License-Identifier: Apache-2.0
"""An xDS client that does not know what resources mean: it subscribes, acknowledges, and keeps bytes by name."""

import queue
import threading

import grpc

METHOD = "/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources"
TYPES = "type.googleapis.com/envoy.config."
CLUSTERS, LISTENERS = f"{TYPES}cluster.v3.Cluster", f"{TYPES}listener.v3.Listener"
# A connection for each client; and a valid host name, because gRPC derives an invalid one from the path of a Unix socket.
OPTIONS = [("grpc.use_local_subchannel_pool", 1), ("grpc.default_authority", "localhost"),
           ("grpc.max_receive_message_length", 64 << 20)]


class Client:
    """A delta ADS stream, aggregated, that is opened anew when it ends."""

    def __init__(self, address, node, types=(CLUSTERS, LISTENERS), credentials=None):
        """Subscribes to `types` by wildcard, or, if it is a dictionary, by names; `credentials` are for TLS, with the server's name."""
        self.address, self.node, self.types = address, node, dict.fromkeys(types, ()) if not isinstance(types, dict) else types
        self.held = {one: {} for one in self.types}
        self.answered = set()
        self.ends = []
        self.stopped = threading.Event()
        if credentials:
            tls, name = credentials
            self.channel = grpc.secure_channel(address, tls, [*OPTIONS, ("grpc.ssl_target_name_override", name)])
        else:
            self.channel = grpc.insecure_channel(address, OPTIONS)
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self):
        while not self.stopped.is_set():
            requests = queue.SimpleQueue()
            for at, (one, names) in enumerate(self.types.items()):
                requests.put(request(one, names=names, node=self.node if at == 0 else None))
            call = self.channel.stream_stream(METHOD)(iter(requests.get, None))
            try:
                for answer in call:
                    self._take(answer, requests)
                self.ends.append("OK")
            except grpc.RpcError as error:
                self.ends.append(f"{error.code().name} {error.details()}")
            requests.put(None)
            self.stopped.wait(0.2)

    def _take(self, answer, requests):
        parts = list(fields(answer))
        one = next(value.decode() for number, value in parts if number == 4)
        for number, value in parts:
            if number == 2:
                inner = list(fields(value))
                name = next((text.decode() for at, text in inner if at == 3), "")
                self.held[one][name] = next((body for at, body in inner if at == 2), b"")
            elif number == 6:
                self.held[one].pop(value.decode(), None)
        requests.put(request(one, nonce=next(value.decode() for number, value in parts if number == 5)))
        self.answered.add(one)

    def stop(self):
        self.stopped.set()
        self.channel.close()


def request(type_url, names=(), node=None, nonce=""):
    """A DeltaDiscoveryRequest."""
    parts = [] if node is None else [field(1, write_node(node))]
    parts += [field(2, type_url.encode()), *(field(3, name.encode()) for name in names)]
    return b"".join([*parts, field(6, nonce.encode())] if nonce else parts)


def write_node(node):
    """A Node of {"id", "cluster", "metadata"}."""
    return field(1, node["id"].encode()) + field(2, node.get("cluster", "").encode()) + field(3, struct(node.get("metadata", {})))


def struct(members):
    entries = ((field(1, key.encode()) + field(2, value_of(value))) for key, value in members.items())
    return b"".join(field(1, entry) for entry in entries)


def value_of(value):
    return field(5, struct(value)) if isinstance(value, dict) else field(3, str(value).encode())


def field(number, payload):
    return varint(number << 3 | 2) + varint(len(payload)) + payload


def varint(number):
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


def fields(message):
    """The fields of a message that have a length: (number, bytes)."""
    at = 0

    def read():
        nonlocal at
        number = shift = 0
        while True:
            byte = message[at]
            at, number, shift = at + 1, number | (byte & 127) << shift, shift + 7
            if byte < 128:
                return number

    while at < len(message):
        tag = read()
        if tag & 7 == 0:
            read()
        elif tag & 7 == 2:
            size = read()
            yield tag >> 3, bytes(message[at:at + size])
            at += size
        else:
            at += {1: 8, 5: 4}[tag & 7]
