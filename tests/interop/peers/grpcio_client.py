# SPDX-License-Identifier: Apache-2.0
"""A program of its own: calls its targets with grpcio without end, and prints which backend answered, as JSON lines.

It needs no generated code: the request of grpc.health.v1.Health/Check is the empty message. It ends with its
standard input.
"""

import json
import os
import sys
import threading
import time

import grpc

# The pause between two calls of all targets together.
CALL_EVERY = float(os.environ.get("INTEROP_CALL_EVERY", "10")) / 1000
CALL_TIMEOUT = 20


def call_for_ever(target, lock):
    check = grpc.insecure_channel(target).unary_unary("/grpc.health.v1.Health/Check")
    started = False
    while True:
        answer = {"target": target}
        try:
            # Waiting for the first configuration is not a failure; later nothing may have to wait.
            _, call = check.with_call(b"", timeout=CALL_TIMEOUT, wait_for_ready=not started)
            answer["backend"] = dict(call.initial_metadata()).get("backend", "")
            started = True
        except grpc.RpcError as error:
            answer["error"] = f"{error.code().name} {error.details()}"
        with lock:
            print(json.dumps(answer), flush=True)
        time.sleep(CALL_EVERY * (len(sys.argv) - 1))


def main():
    lock = threading.Lock()
    for target in sys.argv[1:]:
        threading.Thread(target=call_for_ever, args=(target, lock), daemon=True).start()
    sys.stdin.read()


if __name__ == "__main__":
    main()
