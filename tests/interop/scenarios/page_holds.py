# SPDX-License-Identifier: Apache-2.0
"""What is held, in the words of each reason: on the page in a real browser, at `/holds`, and in the answers to orders."""

import subprocess
import time

from peers import resources as make
from peers.browser import Browser
from peers.envoy import ADS_DELTA
from peers.process import Failed, eventually
from scenario import scenario
from scenarios.apart import two_sources
from scenarios.page import accessible, fits, status

MANY = [f"many-{number}" for number in range(4)]
# A name that plays tricks, and how it is shown.
MARK, SHOWN = "web\u202e<b>\u001b", "web\\u{202e}<b>\\u{1b}"


@scenario("D-09, D-10, D-12, K-37, K-07", caches=("linear",), relay_only="it is about the relay", needs="chromium")
def the_page_of_holds(world):
    """A row of each: many lost at once, one that something refers to, a change that waits for another source, older content."""
    registry = world.another_control_plane("registry")
    registry.apply(put=[make.endpoints(name, 8080) for name in ("x", "z", MARK)])
    kept = [make.cluster("x"), make.cluster("z"), make.cluster(MARK),
            make.listener("web", world.port, make.rds("main")), make.routes("main", make.to(MARK, "/mark"), make.to("x"))]
    world.control_plane.apply(put=[*kept, *(make.cluster(name) for name in MANY)])
    registry.apply(put=[make.endpoints(name, 8080) for name in MANY])
    relay = two_sources(world, registry, "guard: { unready: 10m }\n")
    envoys = [world.envoy(ADS_DELTA, node=f"edge-{number}").ready() for number in range(2)]
    for envoy in envoys:
        eventually(f"{envoy.name} has all", lambda envoy=envoy: {"x", "z", *MANY} <= set(envoy.clusters()))
    page = Browser(world.programs.chromium, world.logs).page()
    page.go(f"http://{relay.admin}/")
    page.sees("nothing is held", ".figures")
    page.sees("Nothing is held.", "#holds")

    # It comes back with less: what is lost is held.
    address = world.control_plane.address
    world.control_plane.stop()
    plane = world.new_control_plane(address)
    plane.apply(put=kept)
    held = "#holds"
    page.sees(["Removed cds many-0, many-1, many-2 and 1 more still served: much was lost at once. They are passed on in ",
               f" unless http://{address} sends them again.", "distributary holds extend "], held)
    # The first state is over: what goes now is meant.
    time.sleep(7)
    plane.apply(remove=[("cds", "x"), ("cds", MARK)])
    page.sees(f"Removed cds {SHOWN}, x still served: rds main refers to {SHOWN}. They are passed on once nothing refers to them.", held)
    if page.value("document.querySelectorAll('#holds b').length"):
        raise Failed("a name became markup")
    # Clients reject a content; who comes later is sent the one before.
    world.expect_rejections()
    plane.apply(put=[make.cluster("z", timeout="0s")])
    for envoy in envoys:
        eventually(f"{envoy.name} rejects it", lambda envoy=envoy: envoy.stat("cluster_manager.cds.update_rejected"))
    newcomer = world.envoy(ADS_DELTA, node="newcomer").ready()
    eventually("the newcomer has the cluster", lambda: "z" in newcomer.clusters())
    page.sees("Older content of cds z used by 3 clients: the current one is rejected.", held)
    # The route leads to a cluster whose endpoints another source would have, if it were there.
    registry.stop()
    eventually("the relay has noticed", lambda: "#registry::" in relay.page("/clusters") and "unreachable" in relay.page("/clusters"))
    plane.apply(put=[make.cluster("y"), make.routes("main", make.to("y"))])
    page.sees(["Changed rds main not served yet: it leads to eds y, whose source is away. It is served in ", " at the latest."], held)
    page.sees(["held removals", "1 waiting change", "1 older content"], ".figures")
    page.sees(["held removal", "waiting change", "older content"], ".changes")
    accessible(world, page)
    fits(page)

    said = relay.page("/holds")
    for words in ("much was lost at once", "  x: rds main refers to it", f"  {SHOWN}: rds main refers to it", "  main: it leads to eds y, whose source is away\n",
                  "they are changed, and another source does not have what they lead to", "older content used by 3 clients"):
        if words not in said:
            raise Failed(f"/holds does not say {words!r}: {said}")
    # The clusters go with it, for the new route does not refer to them.
    released = "1 waiting change is served: 1 rds for another source\nwith 2 others, to which nothing else refers: 2 cds\n"
    if (answer := order(world, "release", "rds-unready")) != released:
        raise Failed(f"the order is answered with {answer!r}")
    page.sees("served: a person let it go", ".changes")
    log = relay.log.read_text()
    for words in ("much was lost at once: removed", "because served resources refer to them", "changed resources wait", "served: a person let it go"):
        if words not in log:
            raise Failed(f"the log does not say {words!r}")
    for place, text in {"log": log, "/holds": said, "`status`": status(world, "--resources", "-o", "wide")}.items():
        if "\u202e" in text or "\u001b" in text:
            raise Failed(f"a name plays tricks in the {place}")


def order(world, *words):
    """Gives an order for what is held, and returns what is answered."""
    command = [world.programs.relay, "holds", *words, "--reason", "a story", "--admin", world.relay.admin]
    return subprocess.run(command, capture_output=True, text=True, timeout=20).stdout
