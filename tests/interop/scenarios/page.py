# SPDX-License-Identifier: Apache-2.0
"""The page of the admin address in a real browser: what its readers look for, they find."""

import json
import re
import signal
import subprocess
import time

from peers import resources as make
from peers.browser import Browser
from peers.envoy import ADS_DELTA
from peers.process import Failed, eventually
from peers.subscribers import Subscribers
from scenario import scenario

CLIENTS = 12
CLUSTERS = 3
# How many changes come in about a second.
BURST = 200
OUTCOMES = "[...document.querySelectorAll('.changes .outcome')].map((one) => one.innerText)"
MARKUP = "<img src=x onerror=\"document.title='broken'\">"
# How much moves on the page, as browsers measure it, while new numbers come for some seconds.
SHIFT_MAX = 0.01
SHIFTS = """new Promise((done) => {
  let sum = 0;
  new PerformanceObserver((list) => list.getEntries().forEach((one) => { sum += one.value; })).observe({ type: 'layout-shift' });
  setTimeout(() => done(sum), 3000);
})"""


def shop(world):
    """A relay with two control planes, an Envoy and some plain clients: (the fallback, the Envoy)."""
    many = [f"many-{number}" for number in range(CLUSTERS)]
    names = ["payments", "cart", MARKUP, "right-to-\u202eleft", *many]
    everything = [*(part for name in names for part in (make.cluster(name), make.endpoints(name, 8080))),
                  make.listener("web", world.port, make.rds("main")), make.routes("main", make.to("payments"))]
    second = world.another_control_plane("fallback")
    for control_plane in (world.control_plane, second):
        control_plane.apply(put=everything)
    relay = world.start_relay([world.control_plane.address, second.address])
    envoy = world.envoy(ADS_DELTA, node="edge-fra-1", about={"locality": {"region": "eu", "zone": "fra-1"}}).ready()
    clients = Subscribers(world.programs.go, world.logs, CLIENTS, CLUSTERS, [relay.address])
    eventually("all clients have everything", lambda: clients.settled([relay.address]))
    return second, envoy


def reject(world):
    """Has the Envoy reject a cluster that it had accepted."""
    world.expect_rejections()
    world.control_plane.apply(put=[make.cluster("payments", timeout="0s")])


def accessible(world, page):
    """Fails if axe finds anything."""
    if page.value("typeof axe") == "undefined":
        page.call("Runtime.evaluate", expression=world.programs.axe.read_text())
    found = page.value(
        "axe.run().then(({ violations }) => violations.map(({ id, nodes }) => [id, nodes.map((one) => one.html)]))")
    if found:
        raise Failed(f"axe at {page.value('location.hash')!r}: {json.dumps(found)[:1500]}")


def fits(page):
    """Fails if a reader has to scroll sideways, or if anything went wrong in the page."""
    wide = page.value("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    if wide > 0:
        raise Failed(f"{page.value('location.hash')!r} is {wide} pixels too wide")
    if page.errors:
        raise Failed(f"errors in the page: {page.errors}")


def go(page, hash_):
    """Opens another view of the page."""
    page.value(f"location.hash = {json.dumps(hash_)}")


@scenario("B-22, K-07", caches=("linear",), relay_only="it is about the relay", needs="chromium")
def the_page(world):
    """A client is found and read; a rejection is followed to what changed; a control plane goes and returns; a change is seen to
    reach everybody. Nothing that clients or control planes say becomes markup."""
    second, envoy = shop(world)
    browser = Browser(world.programs.chromium, world.logs)
    page = browser.page()
    page.go(f"http://{world.relay.admin}/")
    page.sees([f"{CLIENTS + 1} connections", world.control_plane.address, second.address, "No client rejects anything"])
    page.sees("serving", "#pulse")
    page.sees(["Nothing is wrong.", "Last changes", "accepted", "The relay began", "of memory"])
    accessible(world, page)

    # A word that every object of the language knows is no view.
    go(page, "#__proto__")
    page.sees("Nothing is wrong.")
    fits(page)

    # A client.
    page.follow("Clients", "#nav a")
    page.sees(["edge-fra-1", "subscriber"])
    page.write("#search", "edge")
    eventually("only the Envoy is found", lambda: "subscriber" not in page.text())
    accessible(world, page)
    page.follow("edge-fra-1")
    page.sees(["It has accepted all that it asked for.", "eu / fra-1", "payments", MARKUP, "right-to-\\u{202e}left"])
    accessible(world, page)
    if page.value("document.images.length") or page.value("document.title") == "broken":
        raise Failed("a name became markup")

    # A rejection, to what changed.
    reject(world)
    page.sees("It waits for cds (1 rejected)")
    first_in_trouble(page)
    most_first(page)
    go(page, "")
    page.sees("1 client rejects cds payments", ".troubles")
    page.sees("1 client rejects it", ".changes")
    page.follow("1 client rejects cds payments")
    page.sees(["ConnectTimeout: value must be greater than 0s", "edge-fra-1"])
    page.follow("what changed")
    page.sees(['-   "connect_timeout": "5s"', '+   "connect_timeout": "0s"'])
    accessible(world, page)
    go(page, "#resource/cds/payments")
    page.sees([f"{CLIENTS} of {CLIENTS + 1} clients that ask for it have it. One rejects it."])
    go(page, "#resources/cds/payments")
    page.sees("1 client rejects it", "tbody .state.wrong")
    accessible(world, page)
    on_a_phone(world, browser)
    go(page, "#resource/cds/payments")
    world.control_plane.apply(put=[make.cluster("payments", timeout="7s")])
    page.sees([f"All {CLIENTS + 1} clients that ask for it have it.", '"connect_timeout": "7s"'])

    # How fast a change reaches everybody.
    go(page, "#resource/eds/many-0")
    world.control_plane.apply(put=[make.endpoints("many-0", 8081)])
    page.sees(['"port_value": 8081', f"Accepted by {CLIENTS + 1} of {CLIENTS + 1} clients, the last of them"])
    accessible(world, page)

    # A failover, and back.
    go(page, "#servers")
    page.sees(f"answering\n{world.control_plane.address}".split("\n"))
    address = world.control_plane.address
    world.control_plane.stop()
    page.sees(["unreachable", "cannot connect"])
    page.sees(["serving; ", f"{address} is away"], "#pulse.wrong")
    accessible(world, page)
    go(page, "")
    page.sees(["Control plane ", f"{address} unreachable since"], ".troubles li:first-child")
    accessible(world, page)
    world.new_control_plane(address).apply(put=[make.cluster("cart")])
    eventually("it is reached again", lambda: "unreachable" not in page.text())
    page.sees("serving", "#pulse.well")
    # It says less than the one before: what it lacks is held.
    page.sees(["No client rejects anything", "current", "Removed lds web still served: much was lost at once. It is passed on in "])
    page.sees("distributary holds extend ", "#holds code")
    orders(world, page)
    if (moved := page.value(SHIFTS)) > SHIFT_MAX:
        raise Failed(f"new numbers move the page by {moved:.3f}")
    fits(page)
    keyboard(page)


# How old what is shown may be before that is said, in seconds, and how often the slowest part of the page asks anew.
OLD, ROUND = 15, 10
GREY = "document.body.className"
# How wide the lines of the charts are, in pixels.
LINES = "[...document.querySelectorAll('.chart path.line')].map((one) => one.getBBox().width)"


@scenario("K-07", caches=("linear",), relay_only="it is about the relay", needs="chromium")
def the_page_of_a_relay_that_hangs(world):
    """A relay that has just begun has charts in which something can be seen. While it hangs, the page is grey, and says since when; when
    another process is there, the page begins anew."""
    shop(world)
    browser = Browser(world.programs.chromium, world.logs)
    page = browser.page()
    page.go(f"http://{world.relay.admin}/")
    page.sees(["The last 5 minutes", "5 min ago", "The relay began"])
    eventually("a point that can be seen", lambda: any(width >= 4 for width in page.value(LINES)))
    page.sees("serving", "#pulse.well")
    accessible(world, page)
    # Each part is asked for anew before it is old.
    for _ in range(2 * OLD):
        if page.value(GREY) or "as of" in page.text("#pulse"):
            raise Failed(f"it is old although the relay answers: {page.text('#pulse')!r}")
        time.sleep(0.5)

    began = time.monotonic()
    world.relay.child.send_signal(signal.SIGSTOP)
    page.sees("; as of ", "#pulse", within=OLD + 5)
    if time.monotonic() - began < OLD - ROUND - 2:
        raise Failed("it is old too early")
    if page.value(GREY) != "old":
        raise Failed("what is old is not grey")
    world.relay.child.send_signal(signal.SIGCONT)
    eventually("it is as of now", lambda: "as of" not in page.text("#pulse") and not page.value(GREY))

    # A page behind another one sleeps, and hears nothing; once it wakes, it shows what has happened meanwhile.
    browser.page()
    eventually("the page sleeps", lambda: page.value("document.hidden"))
    world.control_plane.apply(put=[make.cluster("while-asleep")])
    time.sleep(OLD + 2)
    if "while-asleep" in page.text(".changes"):
        raise Failed("the page does not sleep")
    page.call("Page.bringToFront")
    page.sees("while-asleep", ".changes")
    eventually("it is as of now", lambda: "as of" not in page.text("#pulse") and not page.value(GREY))

    page.value("window.before = true")
    address, admin = world.relay.address, world.relay.admin
    world.relay.kill()
    world.start_relay([world.control_plane.address], address=address, admin=admin)
    eventually("the page begins anew", lambda: page.value("window.before") is None)
    page.sees("serving", "#pulse")
    # The relay that was killed broke off what it was sending.
    page.errors = [error for error in page.errors if "net::ERR_" not in error]
    fits(page)


@scenario("K-07", caches=("linear",), relay_only="it is about the relay", needs="chromium")
def the_last_changes(world):
    """Each row of the last changes is of one change, however many come in a second, and its time stays."""
    shop(world)
    browser = Browser(world.programs.chromium, world.logs)
    page = browser.page()
    page.go(f"http://{world.relay.admin}/")
    page.sees("Last changes")

    # Some in a second, and then as many as there are.
    for each in (4, BURST):
        names = [f"many-{number % CLUSTERS}" for number in range(each)]
        for number, name in enumerate(names):
            world.control_plane.apply(put=[make.endpoints(name, 9000 + each + number)])
        for at in range(9):
            world.control_plane.apply(put=[make.cluster(f"new-{each}-{at}"), make.endpoints(f"new-{each}-{at}", 9000 + at)])
        eventually("the page shows what changed", lambda: rows(page) == told(world))

    # One after the other: the time of each is its own.
    for number in range(4):
        world.control_plane.apply(put=[make.endpoints(f"many-{number % CLUSTERS}", 10_000 + number)])
        time.sleep(1.0)
    page.sees(f"{CLIENTS + 1} of {CLIENTS + 1} accepted within", ".changes")
    slow = [row for row in page.value(OUTCOMES) if re.search(r"within [\d.]+ (s|min)", row)]
    if slow:
        raise Failed(f"changes that took a moment are shown as {slow}")
    accessible(world, page)
    fits(page)


@scenario("K-37, K-07", caches=("linear",), relay_only="it is about the relay", needs="chromium")
def the_page_of_a_rejection(world):
    """Two Envoys reject a cluster. The page says so in the words of the rejection, and that a newcomer, which had nothing, was sent older
    content; so does `status`. When the cluster is repaired, none of that is left."""
    _, first = shop(world)
    second = world.envoy(ADS_DELTA, node="edge-fra-2").ready()
    eventually("the second Envoy has the cluster", lambda: "payments" in second.clusters())
    reject(world)
    rejected = "cluster_manager.cds.update_rejected"
    for envoy in (first, second):
        eventually(f"{envoy.name} rejects it", lambda envoy=envoy: envoy.stat(rejected))
    newcomer = world.envoy(ADS_DELTA, node="edge-ams-3").ready()
    eventually("the newcomer has the cluster", lambda: "payments" in newcomer.clusters())
    words = "ConnectTimeout: value must be greater than 0s"

    page = Browser(world.programs.chromium, world.logs).page()
    page.go(f"http://{world.relay.admin}/")
    page.sees("3 clients reject cds payments", ".troubles")
    page.follow("3 clients reject cds payments")
    page.sees([words, "Older content", "1 client had nothing, and was sent it", "edge-fra-1", "edge-fra-2", "edge-ams-3"])
    accessible(world, page)
    fits(page)
    go(page, "#clients")
    page.sees("edge-ams-3")
    page.follow("edge-ams-3")
    page.sees(["It rejects payments since", "had nothing, and was sent older content.", words])
    accessible(world, page)
    fits(page)
    page.follow("What it rejects")
    page.sees(['-   "connect_timeout": "5s"', '+   "connect_timeout": "0s"'])

    table = status(world, "--clients", "-o", "wide")
    for said in ("older cds payments@", "rejecting cds payments@"):
        if said not in table:
            raise Failed(f"`status --clients` does not say {said!r}: {table}")
    world.control_plane.apply(put=[make.cluster("payments", timeout="7s")])
    go(page, "")
    page.sees("No client rejects anything")
    if "payments@" in status(world, "--clients", "-o", "wide"):
        raise Failed("`status` still says that something is rejected")


def status(world, *arguments):
    """What `distributary status` prints."""
    command = [world.programs.relay, "status", *arguments, "--admin", world.relay.admin]
    return subprocess.run(command, capture_output=True, text=True, timeout=20).stdout


def orders(world, page):
    """A person extends one of several held removals and lets another one go: the page tells both apart from the rest."""
    for words in (["extend", "cds/payments", "--for", "2h"], ["release", "cds/many-0"]):
        subprocess.run([world.programs.relay, "holds", *words, "--reason", "a story", "--admin", world.relay.admin],
                       check=True, capture_output=True)
    page.sees(["still served: much was lost at once. The first is passed on in ", ", the last in 1 h 59 min unless "], ".troubles")
    page.sees("no longer held: a person let it go", ".changes")
    world.control_plane.apply(put=[make.cluster("many-1")])
    page.sees("held until it was sent again", ".changes")


def rows(page):
    """The first name of each row of the last changes."""
    return page.value("[...document.querySelectorAll('.changes .name')].map((one) => one.innerText)")


def told(world):
    """The same, as the relay tells it."""
    return [change["some"][0] for change in json.loads(world.relay.page("/changes"))["changes"]]


def most_first(page):
    """The list has those first that have sent most, if that is chosen."""
    go(page, "#clients////requests")
    page.sees("edge-fra-1", "tbody")
    sent = page.value("[...document.querySelectorAll('tbody tr')].map((one) => parseInt(one.cells[7].textContent.replaceAll(',', '')))")
    if len(sent) != CLIENTS + 1 or sent != sorted(sent, reverse=True) or sent[0] == sent[-1]:
        raise Failed(f"the clients have sent {sent}")


def first_in_trouble(page):
    """The client that rejects something is the first of all, and the only one of its state."""
    go(page, "#clients")
    page.sees(["subscriber", "edge-fra-1"])
    page.sees("edge-fra-1", "tbody tr:first-child")
    page.sees("rejects something", "tbody tr:first-child")
    go(page, "#clients//rejecting")
    page.sees(["edge-fra-1", "1 stream."])
    if "subscriber" in page.text():
        raise Failed("a client that rejects nothing is among those that do")
    go(page, "#resources///does_not_exist")
    page.sees("No resource of this name is here.")


def on_a_phone(world, browser):
    """What is wrong and what has changed last can be read on a phone, and the list of clients too."""
    phone = browser.page(400, 800, touch=True)
    phone.go(f"http://{world.relay.admin}/")
    for view, words in {"": ["1 client rejects cds payments", "Last changes"], "#clients": ["edge-fra-1"]}.items():
        go(phone, view)
        phone.sees(words)
        accessible(world, phone)
        fits(phone)
    phone.close()


def keyboard(page):
    """The first key leads to the content, the others to the parts of the page; each of them shows where one is."""
    page.go("about:blank")
    page.go(page.home)
    page.sees("Control planes")
    page.press("Tab", 9)
    if "Skip" not in page.value("document.activeElement.innerText"):
        raise Failed("the first key does not lead to the content")
    for _ in range(5):
        page.press("Tab", 9)
    if page.value("document.activeElement.innerText") != "Clients":
        raise Failed(f"the keys lead to {page.value('document.activeElement.outerHTML')}")
    page.press("Enter", 13, "\r")
    page.sees("edge-fra-1")
    if page.value("document.activeElement.id") != "heading" or page.value("document.title") != "Clients – Distributary":
        raise Failed("a reader who hears the page does not hear where it leads")
