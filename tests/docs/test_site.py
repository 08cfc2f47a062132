"""The docs are complete: the site builds with all links, and nothing that users meet is undocumented."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import click
import pytest
from tests.cli.typing import succeed
from tests.support.ottla_node import OttlaNode

from ottla.cli.reference import client as reference_client
from ottla.cli.reference import commands as reference_commands
from ottla.cli.reference import metrics as reference_metrics
from ottla.metadata.configs.node import NodeConfig
from ottla.metadata.configs.topic import TopicConfig

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
REFERENCE = DOCS / "reference"
_COMMANDS = list(reference_commands.commands())


def test_the_site_builds_and_all_links_lead_somewhere(tmp_path: Path) -> None:
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "mkdocs",
            "build",
            # Without --quiet: with it, mkdocs does not count warnings, and nothing is checked.
            "--strict",
            "--site-dir",
            str(tmp_path / "site"),
        ],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "site" / "guide" / "command-line.html").exists()


def test_the_reference_of_commands_is_up_to_date() -> None:
    assert (REFERENCE / "cli.md").read_text() == reference_commands.render_reference(), "run `make reference`"


def test_the_reference_of_metrics_is_up_to_date() -> None:
    assert (REFERENCE / "metrics.md").read_text() == reference_metrics.render_reference(), (
        "run `make reference`"
    )


def test_every_metric_has_a_meaning() -> None:
    for metric in reference_metrics.metrics_of_a_node():
        assert metric.documentation.endswith("."), f"{metric.name} says nothing in a sentence"


@pytest.mark.parametrize(("path", "command"), _COMMANDS, ids=[" ".join(path) for path, _ in _COMMANDS])
def test_every_command_and_option_explains_itself(path: tuple[str, ...], command: click.Command) -> None:
    assert command.help, f"{' '.join(path)} has no help"
    page = (REFERENCE / "cli.md").read_text()
    assert len(path) == 1 or f"# {' '.join(path)}\n" in page
    for option in command.params:
        if isinstance(option, click.Option):
            assert option.help, f"{' '.join(path)} {option.opts[0]} has no help"


def test_every_config_has_a_meaning_and_is_listed() -> None:
    page = (REFERENCE / "configs.md").read_text()
    for declarations in (NodeConfig, TopicConfig):
        for key in declarations.keys.values():
            assert key.doc, f"{key.name} says nothing"
            assert f"| `{key.name}` |" in page, f"{key.name} is not in the reference: run `make reference`"


def test_every_method_and_property_of_the_client_is_listed() -> None:
    page = (REFERENCE / "client.md").read_text()
    rendered = reference_client.render_reference()
    for name in re.findall(r"^(?:## `[\w.]+`|\*\*`[\w ]+\(|\| `[\w.]+` \|)", rendered, re.MULTILINE):
        assert name in page, f"{name} is not in the reference: run `make reference`"


def test_every_page_of_the_guide_is_linked_from_another() -> None:
    linked = {
        (page.parent / target).resolve()
        for page in (ROOT / "README.md", *DOCS.rglob("*.md"))
        for target in re.findall(r"\]\(([^)#\s]+\.md)", page.read_text())
    }
    for page in (DOCS / "guide").glob("*.md"):
        assert page.resolve() in linked, f"nobody links to {page.name}"


def test_the_commands_of_the_guide_work_as_shown(tmp_path: Path) -> None:
    blocks = re.findall(r"```sh\n(.*?)```", (DOCS / "guide/command-line.md").read_text(), re.DOTALL)
    assert len(blocks) == 6
    with OttlaNode(tmp_path / "node", {"offsets.topic.num.partitions": "1"}) as node:
        done = subprocess.run(
            ["bash", "-e", "-o", "pipefail", "-c", "\n".join(blocks)],
            env={
                **os.environ,
                "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
                "OTTLA_BOOTSTRAP": node.bootstrap,
                "OTTLA_CONFIG": "/dev/null",
            },
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    assert "orders/" in done.stdout
    assert "retention.ms" in done.stdout


def test_the_profiles_of_the_guide_are_read(tmp_path: Path) -> None:
    (block,) = re.findall(r"```toml\n(.*?)```", (DOCS / "guide/command-line.md").read_text(), re.DOTALL)
    assert set(tomllib.loads(block)["profiles"]) == {"default", "production"}
    (tmp_path / "config.toml").write_text(block)
    assert succeed("topic", "list", "--help", OTTLA_CONFIG=str(tmp_path / "config.toml")).out


def test_the_first_page_links_every_page_in_the_order_of_a_reader() -> None:
    links = re.findall(r"\]\(((?:guide|reference)/[\w-]+\.md)\)", (DOCS / "index.md").read_text())
    nav = re.findall(r": ((?:guide|reference)/[\w-]+\.md)", (DOCS.parent / "mkdocs.yml").read_text())
    assert links == nav
    assert set(links) >= {str(path.relative_to(DOCS)) for path in DOCS.glob("guide/*.md")}


def test_pages_do_not_contradict_each_other_about_queues() -> None:
    """One page said that share groups do not work, when two others showed how."""
    pages = {path: path.read_text() for path in (*DOCS.glob("guide/*.md"), DOCS.parent / "README.md")}
    for path, text in pages.items():
        assert not re.search(r"hare groups do not work|not served: share", text), path
    needed = {
        found
        for text in pages.values()
        for found in re.findall(r"share (?:consumer|groups?).{0,60}?Kafka (?:from )?(4\.\d)", text)
    }
    assert len(needed) <= 1, f"share groups need Apache Kafka {needed}"


def test_every_cause_is_explained_on_a_page() -> None:
    causes = DOCS.parent / "src/ottla/explain/causes"
    named: set[str] = set()
    for path in causes.glob("*.py"):
        for call in re.findall(r'Cause\(\s*("[a-z-]+"(?: if \w+ else "[a-z-]+")?)', path.read_text()):
            named.update(re.findall(r'"([a-z-]+)"', call))
    assert len(named) > 40
    pages = "".join(path.read_text() for path in DOCS.glob("guide/why-*.md"))
    assert {cause for cause in named if f"`{cause}`" not in pages} == set()
