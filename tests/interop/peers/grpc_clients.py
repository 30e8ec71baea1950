"""gRPC clients with an xds:/// target: grpc-go in the Go program, grpcio in a Python process of its own."""

import json
import os
import sys
from pathlib import Path

from .process import Talker
from .traffic import Record


class GrpcClient(Talker):
    """A process that calls its targets all the time; records[target] says what became of it."""

    def __init__(self, name, command, logs, server, targets):
        self.records = {target: Record(f"{name} {target}") for target in targets}
        bootstrap = {"node": {"id": name, "cluster": "interop"},
                     "xds_servers": [{"server_uri": server, "channel_creds": [{"type": "insecure"}],
                                      "server_features": ["xds_v3"]}]}
        environment = {**os.environ, "GRPC_XDS_BOOTSTRAP_CONFIG": json.dumps(bootstrap)}
        environment.pop("GRPC_XDS_BOOTSTRAP", None)
        super().__init__(name, [*command, *targets], logs, environment)

    def hear(self, line):
        call = super().hear(line)
        self.records[call["target"]].note(call.get("backend"), call.get("error"))
        return call


def grpc_go(program, logs, server, targets):
    return GrpcClient("grpc-go", [program, "client"], logs, server, targets)


def grpc_python(logs, server, targets):
    return GrpcClient("grpc-python", [sys.executable, Path(__file__).with_name("grpcio_client.py")], logs, server, targets)
