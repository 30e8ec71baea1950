# SPDX-License-Identifier: Apache-2.0
"""gRPC clients with an xds:/// target: grpc-go in the Go program, grpcio in a Python process of its own, grpc-java and grpc-js."""

import json
import os
import sys
from pathlib import Path

from .process import Talker
from .traffic import Record


class GrpcClient(Talker):
    """A process that calls its targets all the time; records[target] has the results."""

    def __init__(self, name, command, logs, server, targets, text=None):
        self.records = {target: Record(f"{name} {target}") for target in targets}
        # grpc-js takes no bootstrap without a locality.
        bootstrap = {"node": {"id": name, "cluster": "interop", "locality": {}},
                     "xds_servers": [{"server_uri": server, "channel_creds": [{"type": "insecure"}],
                                      "server_features": ["xds_v3"]}]}
        environment = {**os.environ, "GRPC_XDS_BOOTSTRAP_CONFIG": text or json.dumps(bootstrap), "GRPC_GO_LOG_SEVERITY_LEVEL": "warning"}
        environment.pop("GRPC_XDS_BOOTSTRAP", None)
        super().__init__(name, [*command, *targets], logs, environment)

    def hear(self, line):
        call = super().hear(line)
        self.records[call["target"]].note(call.get("backend"), call.get("error"))
        return call

    def rejected(self):
        """Its log lines about configuration that it rejected."""
        return [line for line in self.log.read_text().splitlines() if "NACK" in line]


class GrpcGo(GrpcClient):
    def __init__(self, program, logs, server, targets, text=None):
        self.races = 0
        super().__init__("grpc-go", [program, "client"], logs, server, targets, text)

    def hear(self, line):
        # A race in grpc-go with any xDS server: a call may choose the new cluster before the new picker knows it.
        if "unknown cluster selected for RPC" in line:
            self.races += 1
            return Talker.hear(self, line)
        return super().hear(line)

    def lost_streams(self):
        """Streams to the xDS server that ended with UNAVAILABLE."""
        return [line for line in self.log.read_text().splitlines() if "ADS stream closed" in line and "Unavailable" in line]


class GrpcJava(GrpcClient):
    def __init__(self, folder, logs, server, targets, text=None):
        # It starts quickly, and is not asked to be fast.
        command = ["java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m", "-cp", f"{folder}:{folder}/lib/*", "Client"]
        super().__init__("grpc-java", command, logs, server, targets, text)


class GrpcJs(GrpcClient):
    def __init__(self, folder, logs, server, targets, text=None):
        super().__init__("grpc-js", ["node", folder / "client.js"], logs, server, targets, text)


class GrpcPython(GrpcClient):
    def __init__(self, logs, server, targets, text=None):
        program = Path(__file__).with_name("grpcio_client.py")
        super().__init__("grpc-python", [sys.executable, program], logs, server, targets, text)
