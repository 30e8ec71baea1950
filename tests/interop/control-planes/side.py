# SPDX-License-Identifier: Apache-2.0
"""A program of its own: an Envoy with backends and a steady flow of requests, all in one network namespace.

    side.py ENVOY ARGUMENTS...

Each line of standard input is a JSON object with what to ask for from then on; each line of standard output is a JSON object too.

    {"watch": [{"host", "path", "before": [outcome...], "after": outcome}...], "port": PORT}

An outcome is an HTTP status, or, for 200, the backend's name and the version that the request had when it came there. An answer is
right if it is `after`, or one of `before` while `after` has not been seen yet. `{"right": SECONDS}` follows when each target has
answered `after`, with the time of the last first one on the monotonic clock, and after `{"count": true}` the counts since the watch began.
"""

import asyncio
import ctypes
import json
import signal
import subprocess
import sys
import time

PACE = 0.005
LIMIT = 5.0
BACKENDS = range(9001, 9018)
PR_SET_PDEATHSIG = 1


def put(message):
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


class Target:
    """One host and path, and what it answered so far."""

    def __init__(self, host, path, before, after):
        self.host, self.path, self.before, self.after = host, path, set(before), after
        self.first = None
        self.asked = self.failed = self.wrong = 0
        self.what = {}

    def take(self, sent, outcome):
        self.asked += 1
        if outcome == self.after:
            if self.first is None:
                self.first = time.monotonic()
        elif outcome not in self.before or (self.first is not None and sent > self.first):
            answered = isinstance(outcome, str) and "/" in outcome
            self.wrong, self.failed = self.wrong + answered, self.failed + (not answered)
            self.what[str(outcome)] = self.what.get(str(outcome), 0) + 1


class Watch:
    """The targets of one step."""

    def __init__(self, targets, port):
        self.targets, self.port, self.told = [Target(**target) for target in targets], port, False

    def tell(self):
        """Says once that every target has answered what it must."""
        if not self.told and all(target.first for target in self.targets):
            self.told = True
            put({"right": max(target.first for target in self.targets)})

    def counts(self):
        what = {}
        for target in self.targets:
            for outcome, count in target.what.items():
                what[outcome] = what.get(outcome, 0) + count
        return {"asked": sum(target.asked for target in self.targets), "failed": sum(target.failed for target in self.targets),
                "wrong": sum(target.wrong for target in self.targets), "what": what}


class Flow:
    """A request each 5 ms, to one target of the watch after the other, none of which waits for another."""

    def __init__(self):
        self.watch, self.running = Watch([], 0), set()

    async def run(self):
        number, due = 0, time.monotonic()
        while True:
            due = max(due + PACE, time.monotonic() - PACE)
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            if targets := self.watch.targets:
                task = asyncio.create_task(self.one(self.watch, targets[number % len(targets)]))
                self.running.add(task)
                task.add_done_callback(self.running.discard)
                number += 1

    async def one(self, watch, target):
        sent = time.monotonic()
        try:
            outcome = await asyncio.wait_for(ask(watch.port, target.host, target.path), LIMIT)
        except (OSError, ValueError, asyncio.IncompleteReadError, TimeoutError) as problem:
            outcome = type(problem).__name__
        target.take(sent, outcome)
        watch.tell()

    async def obey(self):
        """Reads the orders; ends with standard input."""
        reader = asyncio.StreamReader(limit=1 << 22)
        await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        while line := await reader.readline():
            order = json.loads(line)
            if "watch" in order:
                self.watch = Watch(order["watch"], order["port"])
                put({"watching": True})
            else:
                watch, self.watch = self.watch, Watch([], 0)
                await asyncio.gather(*self.running, return_exceptions=True)  # Those that are on their way.
                put({"counts": watch.counts()})


async def ask(port, host, path):
    """One request on a connection of its own: its outcome."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(f"GET {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n".encode())
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower().split("\r\n")
        status = int(head[0].split(" ")[1])
        if status != 200:
            return status
        headers = dict(line.split(": ", 1) for line in head[1:] if ": " in line)
        return f"{headers.get('backend')}/{headers.get('version')}"
    finally:
        writer.close()


async def answer(reader, writer):
    """A backend: it answers with its port and the version that it was sent."""
    port = writer.get_extra_info("sockname")[1]
    try:
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
            version = next((line[9:] for line in head.split("\r\n") if line.startswith("version: ")), "0")
            writer.write(f"HTTP/1.1 200 OK\r\nbackend: {port}\r\nversion: {version}\r\ncontent-length: 0\r\n\r\n".encode())
            await writer.drain()
    except (OSError, asyncio.IncompleteReadError):
        writer.close()


async def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    libc = ctypes.CDLL(None)
    with subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL,
                          preexec_fn=lambda: libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)) as envoy:
        try:
            for port in BACKENDS:
                await asyncio.start_server(answer, "127.0.0.1", port, backlog=512)
            flow = Flow()
            running = asyncio.create_task(flow.run())
            await flow.obey()
            running.cancel()
        finally:
            envoy.kill()


if __name__ == "__main__":
    asyncio.run(main())
