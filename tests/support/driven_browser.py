"""A real browser that a test drives: it opens pages, types, clicks, and takes pictures.

It speaks the protocol of Chromium's developer tools over two pipes, so nothing else is needed.
"""

import base64
import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.browser import find_browser

_PATIENCE_S = 120


class DrivenBrowser:
    """One page of one browser."""

    def __init__(self, reading: Any, writing: Any) -> None:
        self._reading = reading
        self._writing = writing
        self._number = 0
        self._session: str | None = None
        self.complaints: list[str] = []
        """What the browser said of pages: errors of scripts, and what the policy of a page has refused."""

    def attach(self) -> None:
        """Open a page."""
        target = self._ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.ask(f"{domain}.enable")

    def ask(self, method: str, **parameters: Any) -> Any:
        """Ask the page for something."""
        return self._ask(method, self._session, **parameters)

    def go(self, url: str) -> None:
        """Open an address, and wait until everything of it is there."""
        self.ask("Page.navigate", url=url)
        self.wait_for("document.readyState === 'complete' && location.href !== 'about:blank'")

    def evaluate(self, script: str) -> Any:
        """Return what an expression is, on the page. A promise is waited for."""
        found = self.ask("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in found:
            raise AssertionError(found["exceptionDetails"])
        return found["result"].get("value")

    def wait_for(self, condition: str) -> None:
        """Wait until an expression is true."""
        poll = (
            f"new Promise((done) => {{ const look = () => ({condition}) ? done(true) : setTimeout(look, 20); "
            f"look(); setTimeout(() => done(false), {_PATIENCE_S * 1000}); }})"
        )
        while True:
            try:
                assert self.evaluate(poll), f"{condition} never was"
            except AssertionError as error:
                # A page that goes away takes the question with it.
                if "destroyed" not in str(error) and "navigated" not in str(error):
                    raise
            else:
                return

    def resize(self, width: int, height: int, *, dark: bool = False, scale: float = 1) -> None:
        """Have a window of this size, on a system that is dark or light."""
        self.ask(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=scale,
            mobile=False,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.ask("Emulation.setEmulatedMedia", features=[scheme])

    def type_text(self, text: str) -> None:
        """Type into whatever has the focus."""
        self.ask("Input.insertText", text=text)

    def press(self, key: str, *, control: bool = False) -> None:
        """Press a key."""
        codes = {"Enter": 13, "ArrowDown": 40, "Escape": 27}
        key_code = codes.get(key, ord(key[0].upper()))
        given = {"key": key, "windowsVirtualKeyCode": key_code, "modifiers": 2 if control else 0}
        text = {"text": "\r" if key == "Enter" else key} if len(key) == 1 or key == "Enter" else {}
        self.ask("Input.dispatchKeyEvent", type="keyDown", **given, **({} if control else text))
        self.ask("Input.dispatchKeyEvent", type="keyUp", **given)

    def picture(self, path: Path, *, whole: bool = False) -> None:
        """Save what is to be seen as a PNG file."""
        found = self.ask("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(found["data"]))

    def _ask(self, method: str, session: str | None = None, **parameters: Any) -> Any:
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if session is not None:
            message["sessionId"] = session
        self._writing.write(json.dumps(message).encode() + b"\0")
        self._writing.flush()
        while True:
            answer = self._read()
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise AssertionError(f"{method}: {answer['error']}")
                return answer["result"]
            self._note(answer)

    def _read(self) -> Any:
        data = bytearray()
        while (byte := self._reading.read(1)) != b"\0":
            assert byte, "the browser has ended"
            data += byte
        return json.loads(data)

    def _note(self, event: dict[str, Any]) -> None:
        parameters = event.get("params", {})
        if event.get("method") == "Runtime.exceptionThrown":
            details = parameters["exceptionDetails"]
            self.complaints.append(details.get("exception", details).get("description", details["text"]))
        elif event.get("method") == "Log.entryAdded" and parameters["entry"]["level"] == "error":
            self.complaints.append(parameters["entry"]["text"])


@contextmanager
def driven_browser(profile: Path) -> Iterator[DrivenBrowser]:
    """Start a browser. Skips the test where there is none."""
    program = find_browser()
    to_browser, from_us = os.pipe()
    to_us, from_browser = os.pipe()
    shell = f'exec "$0" "$@" 3<&{to_browser} 4>&{from_browser}'
    command = [
        "bash",
        "-c",
        shell,
        program,
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--hide-scrollbars",
    ]
    command += [f"--user-data-dir={profile}", "--remote-debugging-pipe", "--lang=en", "about:blank"]
    process = subprocess.Popen(
        command, pass_fds=(to_browser, from_browser), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    os.close(to_browser)
    os.close(from_browser)
    with os.fdopen(from_us, "wb") as writing, os.fdopen(to_us, "rb") as reading:
        try:
            browser = DrivenBrowser(reading, writing)
            browser.attach()
            yield browser
        finally:
            process.terminate()
            process.wait()
