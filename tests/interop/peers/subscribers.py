# SPDX-License-Identifier: Apache-2.0
"""Many plain clients in the Go program, which say what each response brings."""

from .process import Talker
from .resources import TYPES


class Subscribers(Talker):
    """Clients that ask for all clusters and listeners, for the endpoints `many-0` and so on, and for the route `main`. Every second
    one speaks delta. When its stream ends, a client opens another one at the next server."""

    def __init__(self, program, logs, clients, clusters, servers):
        super().__init__("subscribers", [program, "subscribe", clients, clusters, *servers], logs)
        self.count = clients

    def responses(self):
        """What came so far."""
        with self.news:
            return list(self.lines)

    def streams(self):
        """What came on each stream, by the client's number and the stream's."""
        streams = {}
        for line in self.responses():
            streams.setdefault((line["client"], line["stream"]), []).append(line)
        return streams

    def latest(self):
        """What came on the latest stream of each client."""
        latest = {}
        for (client, stream), lines in self.streams().items():
            if stream >= latest.get(client, (0,))[0]:
                latest[client] = stream, lines
        return {client: lines for client, (_, lines) in latest.items()}

    def settled(self, servers):
        """Whether the latest stream of every client is at one of these servers, and has had the answers that it must get."""
        latest = self.latest()
        return len(latest) == self.count and all(
            lines[0]["server"] in servers and {TYPES["cds"], TYPES["eds"], TYPES["lds"]} <= {line["type"] for line in lines}
            for lines in latest.values()
        )

    def have_had(self, short, name, start):
        """Whether every client was sent this resource, among the responses from index start on."""
        clients = {line["client"] for line in self.responses()[start:] if line["type"] == TYPES[short] and name in line.get("names", ())}
        return len(clients) == self.count
