# SPDX-License-Identifier: Apache-2.0
"""Requests to the proxies that serve, without a pause, as a balancer would send them; and a backend."""

import http.client
import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PACE = 0.01


class Flow:
    """Every proxy that a Service would lead to is asked in turn, on a connection of its own; `wanted` says which answers are right."""

    def __init__(self, addresses, port, host):
        self.addresses, self.port, self.host = addresses, port, host
        self.wanted, self.counts, self.wrong, self.going = set(), Counter(), [], True
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        number = 0
        while self.going:
            serving = self.addresses()
            if self.wanted and serving:
                address = serving[number % len(serving)]
                number += 1
                answer = ask(address, self.port, self.host)
                self.counts["asked"] += 1
                if answer not in self.wanted:
                    self.wrong.append(f"{time.strftime('%T')} {address}: {answer}")
            time.sleep(PACE)

    def end(self):
        self.going = False
        self.thread.join(10)


def ask(address, port, host):
    """The header `version` with which the request came to the backend, or what went wrong."""
    connection = http.client.HTTPConnection(address, port, timeout=5)
    try:
        connection.request("GET", "/", headers={"host": host, "connection": "close"})
        answer = connection.getresponse()
        return answer.headers.get("version", "none") if answer.status == 200 else str(answer.status)
    except (OSError, http.client.HTTPException) as problem:
        return type(problem).__name__
    finally:
        connection.close()


class Answer(BaseHTTPRequestHandler):
    """Answers with the version that the request had."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.send_response(200)
        self.send_header("version", self.headers.get("version", "none"))
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


def backend(address, port):
    server = ThreadingHTTPServer((address, port), Answer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
