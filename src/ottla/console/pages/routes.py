"""All addresses. The reference page of `/api` is written from this list."""

from typing import Final

from ottla.console.pages import groups, overview, records, topics
from ottla.console.serving.app import PageRoute

_TOPIC: Final = "/topics/{topic}"
_RECORD: Final = _TOPIC + "/records/{partition}/{offset}"

ROUTES: Final = (
    PageRoute("GET", "", overview.overview),
    PageRoute("GET", "/checks", overview.checks),
    PageRoute("GET", "/search", overview.search, is_api=True),
    PageRoute("GET", "/doctor", overview.doctor_rows, is_api=True),
    PageRoute("GET", "/topics", topics.topics),
    PageRoute("GET", "/topics", topics.topic_rows, is_api=True),
    PageRoute("GET", _TOPIC, topics.topic),
    PageRoute("GET", _TOPIC, topics.topic_facts, is_api=True),
    PageRoute("GET", _TOPIC + "/configs", topics.topic_configs),
    PageRoute("GET", _TOPIC + "/configs", topics.config_rows, is_api=True),
    PageRoute("GET", _TOPIC + "/records", records.records),
    PageRoute("GET", _TOPIC + "/records", records.record_rows, is_api=True),
    PageRoute("GET", _RECORD, records.record),
    PageRoute("GET", _RECORD + "/{part}", records.record_bytes),
    PageRoute("GET", "/groups", groups.groups),
    PageRoute("GET", "/groups", groups.group_rows, is_api=True),
    PageRoute("GET", "/groups/{group}", groups.group),
)
