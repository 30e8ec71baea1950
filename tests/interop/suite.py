# SPDX-License-Identifier: Apache-2.0
"""Runs the scenarios, prints a line for each, and fails if any failed. `run` prepares what this needs."""

import argparse
import importlib
import multiprocessing
import os
import shutil
import sys
import time
import traceback
from dataclasses import dataclass
from multiprocessing.connection import wait
from pathlib import Path

from peers.prepared import paths, unwind_at_the_end
from peers.process import Failed, own_ports
from scenario import RUNS
from world import World

HERE = Path(__file__).parent
# Longer than any scenario takes, in seconds: a run that takes longer fails.
GIVEN_UP = 300.0 + float(os.environ.get("DISTRIBUTARY_PAUSE", "0"))
# How long a run may take to end its children, in seconds. Then it is killed.
ENDING = 30.0


@dataclass(frozen=True)
class Programs:
    go: Path
    relay: Path
    envoy: Path
    chromium: Path | None = None
    axe: Path | None = None
    java: Path | None = None
    js: Path | None = None
    load: Path | None = None


def main():
    options = arguments()
    for file in sorted((HERE / "scenarios").glob("[a-z]*.py")):
        importlib.import_module(f"scenarios.{file.stem}")
    chosen = [run for run in RUNS if not options.only or any(part in run.name for part in options.only)]
    if options.list:
        print("\n".join(f"{run.name}  ({run.rules})" for run in chosen))
        return 0
    unwind_at_the_end()
    shutil.rmtree(options.logs, ignore_errors=True)
    for run, why in [(run, why) for run in chosen if (why := left_out(run, options))]:
        print(f"left out {run.name}: {why}", flush=True)
        chosen.remove(run)
    began, passed, failed = time.monotonic(), 0, []
    for run, problem, seconds in played(chosen, options):
        if problem:
            failed.append(run.name)
            print(f"FAILED   {run.name} ({seconds:.1f} s): {problem}\n         logs: {logs_of(run, options)}", flush=True)
        else:
            passed += 1
            print(f"passed   {run.name} ({seconds:.1f} s)", flush=True)
    print(f"{time.monotonic() - began:.0f} s. {passed} passed, {len(failed)} failed")
    return 1 if failed or not passed else 0


def left_out(run, options):
    """Why a run is not played, or None."""
    if options.direct and (run.relay_only or run.upstream):
        return run.relay_only or "it is about the relay"
    return f"{run.needs} is missing" if run.needs and not getattr(options, run.needs) else None


def played(chosen, options):
    """Plays the runs, several at a time: each run as it ends, with the error or None, and seconds. Most of a run is waiting."""
    waiting, playing = list(enumerate(chosen)), []
    try:
        while waiting or playing:
            while waiting and len(playing) < options.jobs:
                number, run = waiting.pop(0)
                playing.append(Playing(run, options, number, len(chosen)))
            wait([each.result for each in playing], 1.0)
            for each in [each for each in playing if each.ended()]:
                yield each.run, each.problem(), time.monotonic() - each.began
                playing.remove(each)
    finally:
        for each in playing:
            each.end()


class Playing:
    """A run that is played in a process of its own, which ends with it: no run waits for what another left behind."""

    def __init__(self, run, options, number, runs):
        fork = multiprocessing.get_context("fork")
        self.run, self.began = run, time.monotonic()
        self.result, result = fork.Pipe(duplex=False)
        self.process = fork.Process(target=play_apart, args=(run, options, number, runs, result), name=run.name)
        self.process.start()
        result.close()

    def ended(self):
        return self.result.poll() or time.monotonic() > self.began + GIVEN_UP

    def problem(self):
        """What went wrong, or None. The process has ended afterwards."""
        problem = f"it takes longer than {GIVEN_UP:g} s"
        if self.result.poll():
            try:
                problem = self.result.recv()
            except EOFError:
                problem = "its process ended without a result"
            self.process.join(ENDING)
        self.end()
        return problem

    def end(self):
        """Ends a process that has not ended by itself: it is asked to end its children, then killed."""
        for end in (self.process.terminate, self.process.kill):
            if self.process.is_alive():
                end()
                self.process.join(ENDING)
        self.result.close()


def play_apart(run, options, number, runs, result):
    """What the process of a run does: it plays the run with ports of its own."""
    own_ports(number, runs)
    result.send(play(run, options))


def arguments():
    parser = argparse.ArgumentParser(prog="tests/interop/run", description="The relay among real xDS clients and servers.")
    parser.add_argument("only", nargs="*", help="run only the scenarios whose name contains one of these")
    parser.add_argument("--direct", action="store_true", help="clients talk to the control plane: is it the relay, or the peer?")
    parser.add_argument("--jobs", type=int, default=6, help="scenarios at a time (default: %(default)s)")
    parser.add_argument("--list", action="store_true", help="print the scenarios and the rules that they prove")
    paths(parser, "go", "envoy", "logs")
    paths(parser, "relay", "chromium", "axe", "java", "js", "load", required=False)
    return parser.parse_args()


def logs_of(run, options):
    return options.logs / run.name.replace("/", ".")


def play(run, options):
    """Plays a run: what went wrong, or None."""
    logs = logs_of(run, options)
    logs.mkdir(parents=True)
    more = options.chromium, options.axe, options.java, options.js, options.load
    programs = Programs(options.go, options.relay, options.envoy, *more)
    world, problem = World(programs, logs, run.cache, options.direct, run.upstream), None
    try:
        world.begin()
        run.play(world)
        world.finish()
    except Failed as failure:
        problem = str(failure)
    except Exception:
        problem = traceback.format_exc()
    finally:
        keep(world, logs)
        world.close()
    return problem


def keep(world, logs):
    """Writes down what the control plane and the relay saw, for reading afterwards."""
    if world.control_plane:
        with (logs / "control-plane.events").open("w") as file:
            file.writelines(f"{line}\n" for line in world.control_plane.lines)
    if world.relay and world.relay.alive():
        (logs / "relay.metrics").write_text(world.relay.page("/metrics"))


if __name__ == "__main__":
    sys.exit(main())
