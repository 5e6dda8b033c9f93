"""A visit in headless Chromium by its DevTools protocol."""

import base64
import contextlib
import json
import shutil
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import websocket

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --remote-debugging-port=0 --remote-allow-origins=* "
    "--window-size=1600,1400"
)

# Text and drawn paths of the page, inside shadow roots too.
WALK = """
(() => {
  const seen = {text: '', paths: 0, images: 0};
  const walk = (root) => {
    for (const node of root.querySelectorAll('*')) {
      if (node.shadowRoot) walk(node.shadowRoot);
      const tag = node.tagName.toLowerCase();
      if (tag === 'path' && (node.getAttribute('d') || '').length > 20) seen.paths += 1;
      if (tag === 'img' && node.naturalWidth > 100) seen.images += 1;
      for (const child of node.childNodes) if (child.nodeType === 3) seen.text += child.textContent + ' ';
    }
  };
  walk(document);
  return JSON.stringify(seen);
})()
"""


class Page:
    """One open page."""

    def __init__(self, socket: Any) -> None:
        self._socket = socket
        self._calls = 0

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command and wait for its answer."""
        self._calls += 1
        self._socket.send(json.dumps({"id": self._calls, "method": method, "params": parameters}))
        while True:
            answer = json.loads(self._socket.recv())
            if answer.get("id") == self._calls:
                result: dict[str, Any] = answer["result"]
                return result

    def seen(self) -> dict[str, Any]:
        """What is on the page now."""
        result = self.call("Runtime.evaluate", expression=WALK)
        found: dict[str, Any] = json.loads(result["result"]["value"])
        return found

    def wait_for(self, titles: list[str], *, paths: int = 0, images: int = 0, seconds: float = 60) -> dict[str, Any]:
        """Wait until titles stand on the page and enough is drawn."""
        end = time.monotonic() + seconds
        while True:
            seen = self.seen()
            missing = [title for title in titles if title not in seen["text"]]
            if not missing and seen["paths"] >= paths and seen["images"] >= images:
                return seen
            if time.monotonic() > end:
                raise TimeoutError(f"missing {missing}, {seen['paths']} paths, {seen['images']} images")
            time.sleep(0.3)

    def screenshot(self, path: Path) -> None:
        """Save what is shown as PNG."""
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))


@contextlib.contextmanager
def visit(url: str, profile: Path) -> Iterator[Page]:
    """Open a page in a Chromium of its own."""
    assert CHROMIUM is not None
    command = [CHROMIUM, *FLAGS.split(), f"--user-data-dir={profile}", url]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        address = _page_address(profile / "DevToolsActivePort")
        socket = websocket.create_connection(address, timeout=60)
        try:
            yield Page(socket)
        finally:
            socket.close()
    finally:
        process.kill()
        process.wait()


def _page_address(file: Path) -> str:
    end = time.monotonic() + 60
    while time.monotonic() < end:
        with contextlib.suppress(OSError, StopIteration, urllib.error.URLError, ValueError):
            port = int(file.read_text().split("\n")[0])
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/json") as answer:
                pages = json.load(answer)
            return str(next(page for page in pages if page["type"] == "page")["webSocketDebuggerUrl"])
        time.sleep(0.2)
    raise TimeoutError("Chromium did not open a page in a minute")
