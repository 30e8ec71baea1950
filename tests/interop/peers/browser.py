# SPDX-License-Identifier: Apache-2.0
"""A real Chromium without a window, led by the DevTools protocol over a pair of pipes."""

import base64
import itertools
import json
import os
import threading

from .process import DEADLINE, Failed, Process, eventually

FLAGS = (
    "--headless=new", "--remote-debugging-pipe", "--no-first-run", "--disable-gpu", "--disable-dev-shm-usage",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars", "--mute-audio",
)
# The program reads its orders from the descriptor 3, and answers at 4.
PIPES = 'in=$1 out=$2; shift 2; exec "$@" 3<&"$in" 4>&"$out"'


class Browser(Process):
    """A browser with an empty profile. Messages on its pipes end with a zero."""

    def __init__(self, program, logs):
        orders, self.orders = os.pipe()
        self.answers, answers = os.pipe()
        root = ["--no-sandbox"] if os.geteuid() == 0 else []
        command = [program, *FLAGS, *root, f"--user-data-dir={logs / 'profile'}", "about:blank"]
        wrapped = ["bash", "-c", PIPES, "browser", orders, answers, *command]
        super().__init__("browser", wrapped, logs, inherited=(orders, answers))
        os.close(orders)
        os.close(answers)
        self.numbers, self.replies, self.pages = itertools.count(1), {}, {}
        self.told = threading.Condition()
        threading.Thread(target=self._listen, name="read the browser", daemon=True).start()

    def _listen(self):
        with os.fdopen(self.answers, "rb") as pipe:
            rest = b""
            while more := pipe.read1(1 << 20):
                *messages, rest = (rest + more).split(b"\0")
                for message in messages:
                    self._take(json.loads(message))

    def _take(self, message):
        with self.told:
            if "id" in message:
                self.replies[message["id"]] = message
            elif page := self.pages.get(message.get("sessionId")):
                page.hear_event(message["method"], message["params"])
            self.told.notify_all()

    def call(self, method, session=None, within=DEADLINE, **params):
        """Gives an order and returns the result."""
        number = next(self.numbers)
        order = {"id": number, "method": method, "params": params, **({"sessionId": session} if session else {})}
        os.write(self.orders, json.dumps(order).encode() + b"\0")
        with self.told:
            if not self.told.wait_for(lambda: number in self.replies, within):
                raise Failed(f"the browser did not answer {method} within {within:g} s")
            reply = self.replies.pop(number)
        if "error" in reply:
            raise Failed(f"{method}: {reply['error']['message']}")
        return reply["result"]

    def page(self, width=1280, height=900, dark=False, touch=False):
        """A new page of this size and colour."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = self.pages[session] = Page(self, session)
        for domain in ("Page", "Runtime", "Log", "Performance"):
            page.call(f"{domain}.enable")
        page.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=touch)
        page.call("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"},
            {"name": "prefers-reduced-motion", "value": "reduce"}])
        return page

    def stop(self, within=10.0):
        super().stop(within)
        os.close(self.orders)


class Page:
    """One page, and everything that went wrong in it."""

    def __init__(self, browser, session):
        self.browser, self.session, self.errors, self.home = browser, session, [], None

    def call(self, method, **params):
        return self.browser.call(method, self.session, **params)

    def hear_event(self, method, params):
        if method == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.errors.append(details.get("exception", {}).get("description") or details["text"])
        elif method == "Log.entryAdded" and params["entry"]["level"] == "error":
            self.errors.append(f"{params['entry']['text']} {params['entry'].get('url', '')}")
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning"):
            self.errors.append(json.dumps(params["args"]))

    def go(self, address):
        """Opens an address, and waits until the page has its scripts. The first one is its home."""
        self.home = self.home or address
        self.call("Page.navigate", url=address)
        eventually(f"{address} is loaded", lambda: self.value("document.readyState") == "complete")
        return self

    def value(self, expression):
        """The value of a JavaScript expression, which may be a promise."""
        answer = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if details := answer.get("exceptionDetails"):
            raise Failed(f"{expression}: {details.get('exception', {}).get('description', details['text'])}")
        return answer["result"].get("value")

    def text(self, selector="#content"):
        """What a reader reads there."""
        return self.value(f"document.querySelector({json.dumps(selector)})?.innerText ?? ''")

    def sees(self, words, selector="#content", within=DEADLINE):
        """Waits until all of these words can be read."""
        wanted = [words] if isinstance(words, str) else words
        try:
            eventually(f"the page shows {wanted}", lambda: all(one in self.text(selector) for one in wanted), within)
        except Failed as failed:
            raise Failed(f"{failed}; it shows {self.text(selector)[:600]!r}; errors {self.errors}") from None

    def follow(self, words, selector="a"):
        """Clicks the first link with these words, as a reader would."""
        find = (f"[...document.querySelectorAll({json.dumps(selector)})]"
                f".find((one) => one.innerText.includes({json.dumps(words)}))")
        eventually(f"a link {words!r}", lambda: self.value(f"Boolean({find})"))
        place = self.value(
            f"(() => {{ const link = {find}; link.scrollIntoView({{ block: 'center' }});"
            " const { x, y, width, height } = link.getClientRects()[0]; return [x + width / 2, y + height / 2]; })()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=place[0], y=place[1], button="left", clickCount=1)

    def press(self, key, code=0, text=None):
        """Presses a key."""
        for kind in ("keyDown", "keyUp"):
            typed = {"text": text} if text else {}
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, **typed)

    def write(self, selector, text):
        """Writes into a field."""
        self.value(f"document.querySelector({json.dumps(selector)}).focus()")
        self.call("Input.insertText", text=text)

    def close(self):
        """Closes the page."""
        self.call("Page.close")

    def picture(self, file, whole=True):
        """Takes a picture of the page."""
        shot = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        file.write_bytes(base64.b64decode(shot["data"]))
