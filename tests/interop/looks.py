# SPDX-License-Identifier: Apache-2.0
"""Looks at every view of the page, at all widths and in both colours. `looks` prepares what this needs."""

import argparse
import shutil
import sys

from peers import resources as make
from peers.browser import Browser
from peers.prepared import paths, unwind_at_the_end
from peers.process import Failed
from scenarios.page import accessible, fits, go, reject, shop
from suite import Programs
from world import World

WIDTHS = {400: 800, 1280: 900, 2000: 1200}
# Each view, and words that it shows when it has everything.
VIEWS = {
    "": ["1 client rejects", "Last changes", "The last 5 minutes", "current"],
    "servers": ["answering", "unused"],
    "resources": ["many-0", "payments"],
    "resource/cds/payments": ["One rejects it.", "connect_timeout"],
    "resource/eds/many-0": ["Accepted by"],
    "clients": ["edge-fra-1", "subscriber"],
    "clients/edge": ["edge-fra-1", "1 stream"],
    "clients//rejecting": ["edge-fra-1", "rejects something"],
    "resources///does_not_exist": ["No resource of this name is here."],
    "rejections": ["ConnectTimeout", "what changed"],
    "certificates": ["Trusted by the relay"],
}


def main():
    parser = argparse.ArgumentParser()
    paths(parser, "go", "envoy", "relay", "chromium", "axe", "logs", "pictures")
    options = parser.parse_args()
    unwind_at_the_end()
    shutil.rmtree(options.logs, ignore_errors=True)
    options.logs.mkdir(parents=True)
    programs = Programs(options.go, options.relay, options.envoy, options.chromium, options.axe)
    world, failures = World(programs, options.logs, "linear", False), []
    try:
        world.begin()
        shop(world)
        reject(world)
        world.control_plane.apply(put=[make.endpoints("many-0", 8081)])
        browser = Browser(options.chromium, options.logs)
        for dark in (False, True):
            for width in WIDTHS:
                failures += look(world, browser, width, dark, options.pictures)
    finally:
        world.close()
    print("\n".join([*failures, f"{len(failures)} failures; pictures are in {options.pictures}"]))
    return 1 if failures else 0


def look(world, browser, width, dark, pictures):
    """Looks at all views at one width: the failures."""
    colour = "dark" if dark else "light"
    page = browser.page(width, WIDTHS[width], dark, touch=width < 600)
    page.go(f"http://{world.relay.admin}/")
    failures = []
    for view, words in [*VIEWS.items(), *followed(page)]:
        name = view.replace("/", "-") or "overview"
        try:
            go(page, view)
            page.sees(words)
            accessible(world, page)
            fits(page)
        except Failed as failed:
            failures.append(f"{name}, {width}, {colour}: {failed}")
        page.picture(pictures / f"{name[:40]}.{width}.{colour}.png")
    # A browser has few connections to one address, and each page that is open keeps one.
    page.close()
    return failures


def followed(page):
    """The views whose address a reader learns from another one."""
    for start, link, words in (
        ("clients/edge", "edge-fra-1", ["It waits for cds"]),
        ("rejections", "what changed", ['+   "connect_timeout": "0s"']),
    ):
        go(page, start)
        page.sees(link)
        page.follow(link)
        page.sees(words)
        yield page.value("location.hash.slice(1)"), words


if __name__ == "__main__":
    sys.exit(main())
