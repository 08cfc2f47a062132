"""The reference page in the docs is what the declarations say."""

from pathlib import Path

from ottla.metadata.configs.client_metrics import ClientMetricsConfig
from ottla.metadata.configs.group import GroupConfig
from ottla.metadata.configs.node import NodeConfig
from ottla.metadata.configs.quota import QuotaConfig
from ottla.metadata.configs.reference import render_reference
from ottla.metadata.configs.topic import TopicConfig

PAGE = Path(__file__).parents[4] / "docs/reference/configs.md"


def test_the_page_in_the_docs_is_up_to_date() -> None:
    assert PAGE.read_text() == render_reference(), "run `make reference`"


def test_every_config_has_a_line_and_a_sentence() -> None:
    page = render_reference()
    for declarations in (NodeConfig, TopicConfig, GroupConfig, ClientMetricsConfig, QuotaConfig):
        for name, key in declarations.keys.items():
            assert f"| `{name}` |" in page
            assert key.doc[0].isupper() or key.doc[0] == "`"
            assert key.doc.endswith(".")
            assert key.doc in page
