# SPDX-License-Identifier: Apache-2.0
"""Child processes, ports and waiting: everything here has a deadline, and every child is ended by its id."""

import json
import random
import socket
import subprocess
import threading
import time
from pathlib import Path

DEADLINE = 20.0
POLL = 0.02
BEGAN = time.monotonic()
LIVING = []


class Failed(Exception):
    """Something that a scenario expects did not happen."""


# Below the range of ports that systems use for outgoing connections, so that traffic does not occupy them.
PORTS = random.sample(range(15000, 32000), 17000)


def own_ports(number, runs):
    """Keeps this run's part of the ports, so that no two of so many runs are given the same."""
    PORTS[:] = PORTS[number::runs]


def free_port():
    """A port of the loopback interface that was free a moment ago, and that was not returned before."""
    while True:
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", PORTS.pop()))
                return probe.getsockname()[1]
            except OSError:
                continue


def eventually(what, check, within=DEADLINE):
    """Waits until check() returns something true, and returns it."""
    deadline = time.monotonic() + within
    while True:
        found = check()
        if found:
            return found
        if time.monotonic() > deadline:
            raise Failed(f"not within {within:g} s: {what}")
        time.sleep(POLL)


def end_all():
    """Ends every child, the latest first."""
    while LIVING:
        LIVING[-1].stop()


class Process:
    """A child process whose standard error goes to a file of its own."""

    def __init__(self, name, command, logs: Path, environment=None, inherited=()):
        self.name = name
        self.log = logs / f"{name}.log"
        with self.log.open("ab") as errors:
            self.child = subprocess.Popen(
                [str(part) for part in command],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True, env=environment,
                pass_fds=inherited,
            )
        LIVING.append(self)
        self.lines = []
        self.news = threading.Condition()
        self.reader = threading.Thread(target=self._read, name=f"read {name}", daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.child.stdout:
            heard = self.hear(line)
            with self.news:
                self.lines.append(heard)
                self.news.notify_all()
        with self.news:
            self.news.notify_all()

    def hear(self, line):
        """The meaning of a line of standard output; peers that write JSON override this."""
        return line

    def wait_for(self, what, wanted, start=0, within=DEADLINE):
        """Waits for a line of standard output that wanted() accepts, among those from index start on."""
        deadline = time.monotonic() + within
        with self.news:
            while True:
                for line in self.lines[start:]:
                    if wanted(line):
                        return line
                start = len(self.lines)
                self.must_live()
                if not self.news.wait(min(0.2, max(0.0, deadline - time.monotonic()))) and time.monotonic() > deadline:
                    raise Failed(f"{self.name}, not within {within:g} s: {what}")

    def alive(self):
        return self.child.poll() is None

    def must_live(self):
        if not self.alive():
            raise Failed(f"{self.name} ended with {self.child.poll()}: {self.log.read_text()[-300:]} (see {self.log})")
        return True

    def stop(self, within=10.0):
        """Asks the child to end, and kills it if it does not end in time."""
        if self.alive():
            self.child.terminate()
            try:
                self.child.wait(within)
            except subprocess.TimeoutExpired:
                self.child.kill()
        self.child.wait()
        self.child.stdin.close()
        self.reader.join(5)
        if self in LIVING:
            LIVING.remove(self)


class Talker(Process):
    """A child process that writes JSON, one object per line; each object gets the time at which it was read."""

    def hear(self, line):
        return {"at": round(time.monotonic() - BEGAN, 3), **json.loads(line)}

    def tell(self, message):
        self.child.stdin.write(json.dumps(message) + "\n")
        self.child.stdin.flush()
