"""The files of pages: known, small, licensed, and with a hash in their addresses."""

import hashlib
import re
from pathlib import Path

from ottla.console.serving.files import static_files

CONSOLE = Path(__file__).parents[3] / "src" / "ottla" / "console"
VENDOR = CONSOLE / "static" / "vendor"
VENDORED = {
    "htmx.min.js": "a0abb04f2f45a1f89d1d4844023245537e5e6014c87b144553e0607b4cc32130",
    "inter-latin-wght-normal.woff2": "3100e775e8616cd2611beecfa23a4263d7037586789b43f035236a2e6fbd4c62",
    "jetbrains-mono-latin-wght-normal.woff2": (
        "18be452724bfdc236c074ca94a249a7f41a86752c7d04ab258ce9ed5651f6a7e"
    ),
}
LICENCES = {"htmx.LICENSE.txt", "inter.LICENSE.txt", "jetbrains-mono.LICENSE.txt"}


def test_vendored_files_are_what_their_makers_have_published() -> None:
    found = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in VENDOR.iterdir()}
    assert {name: found.get(name) for name in VENDORED} == VENDORED
    assert set(found) == set(VENDORED) | LICENCES


def test_the_console_takes_less_than_a_megabyte() -> None:
    assert sum(path.stat().st_size for path in CONSOLE.rglob("*") if path.suffix != ".pyc") < 1_000_000


def test_addresses_change_with_their_files() -> None:
    for name, file in static_files().items():
        stem, _, ending = name.rpartition(".")
        digest = hashlib.sha256(file.content).hexdigest()[:12]
        assert file.address == f"/static/{stem}.{digest}.{ending}"


def test_styles_load_only_our_files() -> None:
    styles = static_files()["console.css"].content.decode()
    addresses = {file.address for file in static_files().values()}
    assert set(re.findall(r'url\("?([^")]+)"?\)', styles)) <= addresses
    assert "@import" not in styles


def test_templates_have_no_script_and_no_style_of_their_own() -> None:
    inline = re.compile(r"<script(?![^>]* src=)|<style|\sstyle=|\son\w+=|\|\s*safe|hx-on")
    for path in (CONSOLE / "templates").iterdir():
        text = path.read_text()
        assert not inline.search(text), path.name
        assert not re.search(r"(?:src|href)=\"https?:", text), path.name
