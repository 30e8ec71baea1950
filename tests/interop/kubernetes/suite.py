# SPDX-License-Identifier: Apache-2.0
"""Plays one part against an API server of its own. `run` prepares what this needs."""

import argparse
import shutil
import sys
import time
import traceback
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from accounts import Accounts
from applied import Applied
from cluster import Cluster
from contour import Contour
from gateway import Gateway
from istio import Istio
from peers.prepared import paths, unwind_at_the_end
from peers.process import Failed, end_all


def main():
    parser = argparse.ArgumentParser(prog="tests/interop/kubernetes/run")
    parser.add_argument("name", choices=("applied", "service-accounts", "envoy-gateway", "contour", "istio"))
    paths(parser, "etcd", "apiserver", "kubectl", "helm", "relay", "folder", "crds")
    paths(parser, "gateway", "charts", "contour", "manifests", "istiod", "istio", "peers", "envoy", required=False)
    options = parser.parse_args()
    unwind_at_the_end()
    return play(options.name, options)


def play(name, options):
    began, problem, folder = time.monotonic(), None, options.folder / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        cluster = Cluster(options, folder)
        print(f"    API server {cluster.ask('/version')['gitVersion']}, ready after {time.monotonic() - began:.0f} s", flush=True)
        for file in sorted(options.crds.glob("*.yaml")):
            cluster.kubectl("apply", "--server-side", "-f", file)
        begin = {"applied": lambda: Applied(cluster, options.relay), "service-accounts": lambda: Accounts(cluster, options.relay),
                 "envoy-gateway": lambda: Gateway(cluster, options), "contour": lambda: Contour(cluster, options),
                 "istio": lambda: Istio(cluster, options)}
        begin[name]().play()
    except Failed as failure:
        problem = str(failure)
    except Exception:
        problem = traceback.format_exc()
    finally:
        end_all()
    print(f"FAILED   {name}: {problem}\n    logs: {folder}" if problem else f"passed   {name} ({time.monotonic() - began:.0f} s)", flush=True)
    return 1 if problem else 0


if __name__ == "__main__":
    sys.exit(main())
