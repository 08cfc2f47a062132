"""A real browser without a window, for tests of what web pages can do.

It is Chromium, as the system has it (`apt-get install chromium-headless-shell`), or as the variable CHROMIUM
names it. Tests are skipped where there is none.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

_NAMES: Final = ("chromium-headless-shell", "chromium", "google-chrome")


def find_browser() -> str:
    """Return the program. Skips the test if there is none."""
    named = os.environ.get("CHROMIUM")
    found = named or next(filter(None, map(shutil.which, _NAMES)), None)
    if found is None:
        pytest.skip("no Chromium: run apt-get install chromium-headless-shell, or name one with CHROMIUM")
    return found


@contextmanager
def browser_at(url: str, profile: Path, names: str) -> Iterator[subprocess.Popen[bytes]]:
    """Open a page. All of these names, separated by commas, lead to this machine."""
    command = [
        find_browser(),
        "--headless",
        # The sandbox needs rights that a container may not have.
        "--no-sandbox",
        "--disable-gpu",
        f"--user-data-dir={profile}",
        f"--host-resolver-rules={','.join(f'MAP {name} 127.0.0.1' for name in names.split(','))}",
        "--remote-debugging-port=0",
        url,
    ]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.terminate()
        process.wait()
