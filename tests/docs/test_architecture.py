"""The page on the architecture shows the packages and import contracts as they are."""

import re
import tomllib
from typing import Any
from xml.etree import ElementTree

import pytest
from tests.docs.architecture_picture import LAYERS, NO_SPARK, PICTURE, PURE, ROOT, draw, draw_project

PAGE = ROOT / "docs" / "internals" / "architecture.md"
PACKAGES = {path.parent.name for path in (ROOT / "src" / "ottla").glob("*/__init__.py")}


def _project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def _contract(project: dict[str, Any], name: str) -> dict[str, Any]:
    (contract,) = [one for one in project["tool"]["importlinter"]["contracts"] if one["name"] == name]
    found: dict[str, Any] = contract
    return found


def _boxes(picture: str) -> dict[str, tuple[str, int]]:
    """Return the kind of each package in a picture, and where its row is."""
    svg = "{http://www.w3.org/2000/svg}"
    boxes = {}
    kind, top = "", 0
    for element in ElementTree.fromstring(picture).iter():
        if element.tag == f"{svg}rect" and "class" in element.attrib:
            kind, top = element.attrib["class"], int(element.attrib["y"])
        elif element.tag == f"{svg}text" and element.attrib.get("class") == "name":
            assert element.text is not None
            boxes[element.text] = (kind, top)
    return boxes


def test_the_picture_is_up_to_date() -> None:
    assert PICTURE.read_text() == draw_project(), "run `make reference`"


def test_every_package_is_in_the_picture() -> None:
    assert set(_boxes(draw_project())) == PACKAGES


def test_a_package_is_above_those_that_it_may_import() -> None:
    project = _project()
    boxes = _boxes(draw(project, PACKAGES))
    rows = [
        {boxes[name][1] for name in re.findall(r"\w+", layer) if name in PACKAGES}
        for layer in _contract(project, LAYERS)["layers"]
    ]
    tops = [top for row in rows for top in row]
    assert tops == sorted(set(tops)), "a layer is one row, and the next layer is below it"


def test_the_picture_follows_the_contracts() -> None:
    project = _project()
    before = draw(project, PACKAGES)
    _contract(project, PURE)["source_modules"].remove("ottla.storage")
    without = draw(project, PACKAGES)
    assert (_boxes(before)["storage"][0], _boxes(without)["storage"][0]) == ("pure", "edge")
    _contract(project, NO_SPARK)["source_modules"].remove("ottla.cli")
    assert draw(project, PACKAGES).count("may import Spark") == before.count("may import Spark") + 1


def test_every_room_of_the_broker_is_in_the_picture() -> None:
    svg = "{http://www.w3.org/2000/svg}"
    elements = ElementTree.fromstring(draw_project()).iter(f"{svg}text")
    drawn = [element.text for element in elements if element.attrib.get("class") == "room"]
    broker = ROOT / "src" / "ottla" / "broker"
    rooms = [path.parent.name for path in broker.glob("*/__init__.py")]
    loose = [path.stem for path in broker.glob("*.py") if path.name != "__init__.py"]
    assert sorted(filter(None, drawn)) == sorted(rooms + loose)


def test_a_package_without_a_layer_is_refused() -> None:
    with pytest.raises(ValueError, match="has no layer for"):
        draw(_project(), {*PACKAGES, "elsewhere"})


def test_the_page_says_what_every_package_is_for() -> None:
    (table,) = re.findall(r"## The packages\n.*?\n((?:\|.*\n)+)", PAGE.read_text(), re.DOTALL)
    named = re.findall(r"^\| `(\w+)`", table, re.MULTILINE)
    assert sorted(named) == sorted(PACKAGES)


def test_every_file_that_the_page_names_exists() -> None:
    named = re.findall(r"`([\w/]+\.py)`", PAGE.read_text())
    assert named
    for name in named:
        assert list((ROOT / "src" / "ottla").rglob(name)), f"{name} does not exist"
