# SPDX-License-Identifier: Apache-2.0
"""Plays the story in front of each control plane, prints a line for each step, and fails if one failed. `run` prepares what this needs."""

import argparse
import shutil
import sys
import tempfile
import time
import traceback
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from gateway import EnvoyGateway
from istiod import Istiod
from peers.prepared import paths, unwind_at_the_end
from peers.process import Failed, end_all
from story import Story
from traffic import Bench

PLANES = {"istiod": Istiod, "envoy-gateway": EnvoyGateway}
DIALECTS = {"delta": "DELTA_GRPC", "sotw": "GRPC"}


def main():
    options = arguments()
    unwind_at_the_end()
    failed = 0
    for name, program in options.plane:
        for word in options.dialect or DIALECTS:
            played = bench if options.traffic else play
            failed += played(name, program, word, DIALECTS[word], options)
    return 1 if failed else 0


def arguments():
    parser = argparse.ArgumentParser(prog="tests/interop/control-planes/run")
    parser.add_argument("--plane", action="append", default=[], type=lambda text: tuple(text.split("=", 1)), metavar="NAME=PROGRAM")
    parser.add_argument("--dialect", action="append", choices=DIALECTS, help="how the relayed Envoys ask; both unless given")
    parser.add_argument("--traffic", action="store_true", help="requests while configuration moves, direct and relayed at the same moment")
    paths(parser, "relay", "envoy", "logs")
    return parser.parse_args()


def play(name, program, word, dialect, options):
    """One story; 1 if it failed."""
    logs = options.logs / f"{name}-{word}"
    shutil.rmtree(logs, ignore_errors=True)
    logs.mkdir(parents=True)
    began, problem, story = time.monotonic(), None, None
    with tempfile.TemporaryDirectory(prefix="doors-") as doors:  # Paths of sockets must be short.
        doors = Path(doors)
        try:
            story = Story(lambda: PLANES[name](program, logs, doors), options, logs, doors, dialect)
            story.play()
        except Failed as failure:
            problem = str(failure)
        except Exception:
            problem = traceback.format_exc()
        finally:
            if story and story.relay and story.relay.alive():
                (logs / "relay.metrics").write_text(story.relay.page("/metrics"))
            end_all()
            if story:
                (logs / "control-plane.out").write_text("".join(story.plane.lines))
    for tenant, twins in (story and story.twins or {}).items():
        for what, direct, relayed in twins.steps:
            print(f"    {tenant}: {what}: direct {direct * 1000:.0f} ms, relayed {relayed * 1000:.0f} ms", flush=True)
    if story and story.rejections:
        print("    rejected: direct {} times, relayed {} times".format(*story.rejections), flush=True)
    if story and story.told:
        print("    rejections that the control plane counts: {}, {} of them the relay's".format(*story.told), flush=True)
    run = f"{name}, relayed Envoys over {word} ({time.monotonic() - began:.0f} s)"
    print(f"FAILED   {run}: {problem}\n    logs: {logs}" if problem else f"passed   {run}", flush=True)
    return 1 if problem else 0


def bench(name, program, word, dialect, options):
    """Traffic in one dialect; 1 if a request failed because of the relay, or none failed without it."""
    logs = options.logs / f"{name}-traffic-{word}"
    shutil.rmtree(logs, ignore_errors=True)
    logs.mkdir(parents=True)
    began, problem, played = time.monotonic(), None, None
    with tempfile.TemporaryDirectory(prefix="doors-") as doors:  # Paths of sockets must be short.
        doors = Path(doors)
        try:
            played = Bench(lambda: PLANES[name](program, logs, doors, level="info"), options, logs, doors, word, dialect)
            played.play()
            problem = played.verdict()
        except Failed as failure:
            problem = str(failure)
        except Exception:
            problem = traceback.format_exc()
        finally:
            end_all()
            if played:
                (logs / "control-plane.out").write_text("".join(played.plane.lines))
    for row in played and played.rows() or ():
        print(f"    {row}", flush=True)
    run = f"{name}, traffic, all over {word} ({time.monotonic() - began:.0f} s)"
    print(f"FAILED   {run}: {problem}\n    logs: {logs}" if problem else f"passed   {run}", flush=True)
    return 1 if problem else 0


if __name__ == "__main__":
    sys.exit(main())
