# SPDX-License-Identifier: Apache-2.0
"""A collector of OpenTelemetry, which keeps what it is sent as it is."""

import http.server
import threading


class Collector:
    """Takes metrics and traces over HTTP."""

    def __init__(self):
        self.received = []
        received = self.received

        class Take(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                received.append((self.path, self.rfile.read(int(self.headers["content-length"]))))
                self.send_response(200)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Take)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def environment(self):
        """The variables of a program that sends everything at once."""
        return {
            "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{self.server.server_port}", "OTEL_TRACES_SAMPLER": "always_on",
            "OTEL_BSP_SCHEDULE_DELAY": "100", "OTEL_METRIC_EXPORT_INTERVAL": "200",
        }

    def text(self, path):
        """All that came at a path."""
        return b"\n".join(body for at, body in list(self.received) if at == path).decode(errors="replace")
