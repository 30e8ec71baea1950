# SPDX-License-Identifier: Apache-2.0
"""Traffic that never pauses, and the result of every single request."""

import http.client
import threading
import time

from .process import DEADLINE, Failed, eventually

PACE = 0.003
STREAK = 10


class Record:
    """Which backend answered each request; a failure is kept until the end."""

    def __init__(self, name):
        self.name = name
        self.answers = []
        self.failures = []

    def note(self, backend, error):
        if error:
            self.failures.append(f"{self.name}, request {len(self.answers) + len(self.failures)}: {error}")
        else:
            self.answers.append(backend)

    def stop(self):
        """Does nothing: the traffic of a client process ends with the process."""

    def reaches(self, *backends, within=DEADLINE):
        """Waits until the latest answers come from exactly these backends."""
        start = len(self.answers)
        streak = STREAK * len(backends) ** 2

        def settled():
            latest = self.answers[start:][-streak:]
            return len(latest) == streak and set(latest) == set(backends)

        try:
            eventually(f"{self.name} answered by {' and '.join(backends)}", settled, within)
        except Failed as failed:
            raise Failed(f"{failed}; latest answers {self.answers[-5:]}, latest failures {self.failures[-3:]}") from None

    def unbroken(self):
        """No request has failed so far."""
        if self.failures:
            total = len(self.answers) + len(self.failures)
            raise Failed(f"{len(self.failures)} of {total} requests failed, the first: {self.failures[0]}")
        if not self.answers:
            raise Failed(f"{self.name}: there was no traffic at all")


class Http(Record):
    """HTTP requests through a proxy, one connection each, until stopped."""

    def __init__(self, port, path="/", headers=None, name=None, pace=PACE):
        super().__init__(name or f"http {path}")
        self.port, self.path, self.headers, self.pace = port, path, headers or {}, pace
        self.stopped = threading.Event()
        self.thread = threading.Thread(target=self._run, name=self.name, daemon=True)
        self.thread.start()

    def _run(self):
        while not self.stopped.wait(self.pace):
            self.note(*ask(self.port, self.path, self.headers)[:2])

    def stop(self):
        self.stopped.set()
        self.thread.join(DEADLINE)


def ask(port, path="/", headers=None, timeout=DEADLINE):
    """One request: (backend, error, headers of the answer)."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
    began = time.monotonic()
    try:
        connection.request("GET", path, headers={"connection": "close", **(headers or {})})
        answer = connection.getresponse()
        body = answer.read()
        if answer.status != 200:
            return None, f"status {answer.status} {body[:80]!r}", answer.headers
        return answer.headers["backend"], None, answer.headers
    except (OSError, http.client.HTTPException) as problem:
        return None, f"{problem!r} after {time.monotonic() - began:.2f} s", {}
    finally:
        connection.close()
