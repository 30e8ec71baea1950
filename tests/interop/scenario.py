# SPDX-License-Identifier: Apache-2.0
"""How a scenario declares itself, and the list of all scenarios."""

from dataclasses import dataclass, replace
from typing import Callable

from peers.envoy import Dialect

CACHES = ("snapshot", "linear")


@dataclass(frozen=True)
class Run:
    """One run of one scenario: the dialect of its Envoy, if it has one, and the kind of its upstream."""

    story: Callable
    rules: str
    dialect: Dialect | None
    cache: str
    upstream: str | None
    relay_only: str | None
    needs: str | None = None

    @property
    def name(self):
        parts = [self.story.__name__, self.dialect and self.dialect.name, self.cache, self.upstream and f"upstream-{self.upstream}"]
        return "/".join(part for part in parts if part)

    def play(self, world):
        self.story(world, self.dialect) if self.dialect else self.story(world)


RUNS = []


def scenario(rules, dialects=(None,), caches=CACHES, upstreams=(None,), relay_only=None, where="", needs=None):
    """Registers a story for every combination. `rules` lists the rules that it proves; `relay_only` says why the control
    plane alone cannot pass, in the combinations whose names contain `where`; `needs` names a program that it needs."""

    def register(story):
        for dialect in dialects:
            for cache in caches:
                for upstream in upstreams:
                    run = Run(story, rules, dialect, cache, upstream, None, needs)
                    RUNS.append(replace(run, relay_only=relay_only) if where in run.name else run)
        return story

    return register
