# SPDX-License-Identifier: Apache-2.0
"""The program under test."""

import os
import signal
import subprocess
import time
import urllib.error
import urllib.request

from .process import Failed, Process, eventually, free_port

# The `guard` of every relay whose configuration says nothing of it; otherwise the default.
GUARD = os.environ.get("DISTRIBUTARY_GUARD")


class Relay(Process):
    """`distributary serve` between the control plane and the clients."""

    def __init__(
        self, program, logs, upstream, name="relay", address=None, transport=None, ready=True, text=None, polls=False,
        listens=False, admin=None, environment=None,
    ):
        self.address = address or f"127.0.0.1:{free_port()}"
        self.admin = admin or f"127.0.0.1:{free_port()}"
        command = [program, "serve", "--admin", self.admin, "--secrets", "allow"]
        if not listens:  # Otherwise the text says where.
            command += ["--listen", self.address]
        # Without a configuration file if flags are enough: users should not need one then either.
        if polls:
            text = f"upstream: {{ xds_servers: [{{ server_uri: 'rest+http://{upstream}' }}] }}\ntimers: {{ rest_interval: 100ms }}\n"
        if transport:
            text = text or configuration(upstream, transport)
        if not text:
            # Several are priorities.
            for server in [upstream] if isinstance(upstream, str) else upstream:
                command += ["--upstream", f"http://{server}"]
        if GUARD and "guard:" not in (text or ""):
            text = f"{text or ''}guard: {GUARD}\n"
        if text:
            self.config = logs / f"{name}.yaml"
            self.config.write_text(text)
            command += ["--config", self.config]
        self.program = program
        super().__init__(name, command, logs, environment)
        if ready:
            self.ready()

    def bootstrap(self, *arguments):
        """The output of `distributary bootstrap` for a client of this relay."""
        relays = [] if "--relay" in arguments else ["--relay", self.address]
        command = [self.program, "bootstrap", *arguments, *relays]
        return subprocess.run(command, check=True, capture_output=True, text=True, timeout=20).stdout

    def get(self, *arguments):
        """The output of `distributary get` from this relay."""
        command = [self.program, "get", *arguments, "--server", self.address]
        return subprocess.run(command, check=True, capture_output=True, text=True, timeout=20).stdout

    def kill(self):
        """Kills it."""
        self.child.kill()
        self.stop()

    def snapshot_has(self, folder, kind, *names):
        """Whether the only snapshot in the folder has all of these."""
        files = list(folder.glob("*.snapshot"))
        command = [self.program, "get", kind, *names, "-o", "name", "--snapshot", *files]
        return len(files) == 1 and subprocess.run(command, capture_output=True, timeout=20).returncode == 0

    def stop(self, within=10.0):
        """Ends it without waiting until its clients have left one after the other, by a second signal."""
        for _ in range(2):
            if self.alive():
                self.child.send_signal(signal.SIGINT)
                time.sleep(0.1)
        super().stop(within)

    def drain(self):
        """K-26: it ends in an orderly way when it is asked to."""
        super().stop(within=40)
        if self.child.returncode:
            raise Failed(f"the relay ended with {self.child.returncode} after SIGTERM")

    def ready(self):
        eventually("the relay is ready", lambda: self.must_live() and self.status("/ready") == 200)
        return self

    def status(self, path):
        """The HTTP status of a page of the admin address, 0 without an answer."""
        try:
            with urllib.request.urlopen(f"http://{self.admin}{path}", timeout=5) as answer:
                return answer.status
        except urllib.error.HTTPError as refused:
            return refused.code
        except OSError:
            return 0

    def page(self, path):
        """A page of the admin address, or the error."""
        try:
            with urllib.request.urlopen(f"http://{self.admin}{path}", timeout=5) as answer:
                return answer.read().decode()
        except OSError as problem:
            return f"{problem!r}\n"


def configuration(upstream, transport):
    return (
        f"upstream:\n"
        f"  xds_servers:\n"
        f"    - {{ server_uri: 'http://{upstream}', channel_creds: [{{ type: insecure }}], transport: {transport} }}\n"
    )
