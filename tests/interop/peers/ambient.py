# SPDX-License-Identifier: Apache-2.0
"""What istiod has for ztunnel, and clients that ask for it as ztunnel does, in the Go program."""

from .process import Talker, free_port

ADDRESS = "type.googleapis.com/istio.workload.Address"
POLICY = "type.googleapis.com/istio.security.Authorization"


class Ambient(Talker):
    """A control plane with so many workloads, services and policies, over delta, all for everybody."""

    def __init__(self, program, logs, count):
        self.address = f"127.0.0.1:{free_port()}"
        super().__init__("ambient", [program, "ambient", self.address, count], logs)
        self.wait_for("it listens", lambda line: "reply" in line)
        self.commands = 0

    def change(self, **what):
        """`put` and `number`: a workload gets another address; `remove`: one goes."""
        self.commands += 1
        number = self.commands
        self.tell({"id": number, **what})
        self.wait_for("an answer", lambda line: line.get("reply") == number)


class Ztunnels(Talker):
    """Clients that say how much each response brought."""

    def __init__(self, program, logs, clients, server):
        super().__init__("ztunnels", [program, "ztunnels", clients, server], logs)
        self.count = clients

    def brought(self, start=0, kind=None):
        """What came from index start on."""
        with self.news:
            return [line for line in self.lines[start:] if kind in (None, line["type"])]

    def have(self, kind, count):
        """Whether each client holds so many of a type."""
        latest = {line["client"]: line["held"] for line in self.brought(kind=kind)}
        return len(latest) == self.count and set(latest.values()) == {count}
