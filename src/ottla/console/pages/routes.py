"""All addresses. The reference page of `/api` is written from this list."""

from typing import Final

from ottla.console.pages import (
    access,
    changing,
    cluster,
    connectors,
    explaining,
    exporting,
    groups,
    live,
    overview,
    records,
    schemas,
    sending,
    topics,
)
from ottla.console.serving.app import PageRoute

_TOPIC: Final = "/topics/{topic}"
_RECORD: Final = _TOPIC + "/records/{partition}/{offset}"
_CONNECTOR: Final = "/connectors/{connector}"
_GROUP: Final = "/groups/{group}"
_SUBJECT: Final = "/schemas/{subject}"

_PAGES: Final = (
    PageRoute("GET", "", overview.overview),
    PageRoute("GET", "/checks", overview.checks),
    PageRoute("GET", "/topics", topics.topics),
    PageRoute("GET", "/create-topic", changing.create_form),
    PageRoute("POST", "/create-topic", changing.create_topic),
    PageRoute("GET", _TOPIC, topics.topic),
    PageRoute("GET", _TOPIC + "/configs", topics.topic_configs),
    PageRoute("GET", _TOPIC + "/change", changing.change_form),
    PageRoute("POST", _TOPIC + "/change", changing.change_topic),
    PageRoute("GET", _TOPIC + "/records", records.records),
    PageRoute("GET", _RECORD, records.record),
    PageRoute("GET", _RECORD + "/journey", explaining.journey),
    PageRoute("GET", _RECORD + "/{part}", records.record_bytes),
    PageRoute("GET", _TOPIC + "/live", live.tail),
    PageRoute("GET", _TOPIC + "/live/stream", live.tail_stream),
    PageRoute("GET", _TOPIC + "/search", live.search_page),
    PageRoute("GET", _TOPIC + "/search/stream", live.search_stream),
    PageRoute("GET", _TOPIC + "/produce", sending.produce_form),
    PageRoute("POST", _TOPIC + "/produce", sending.produce_one),
    PageRoute("POST", _TOPIC + "/produce/many", sending.produce_many),
    PageRoute("GET", _TOPIC + "/export", exporting.export_form),
    PageRoute("GET", _TOPIC + "/export/file", exporting.export_file),
    PageRoute("GET", _TOPIC + "/hot", explaining.hot),
    PageRoute("GET", _TOPIC + "/letters", explaining.letters),
    PageRoute("GET", _TOPIC + "/why/{question}", explaining.why_topic),
    PageRoute("GET", "/groups", groups.groups),
    PageRoute("GET", _GROUP, groups.group),
    PageRoute("GET", _GROUP + "/reset", changing.reset_form),
    PageRoute("POST", _GROUP + "/reset", changing.reset_group),
    PageRoute("POST", _GROUP + "/delete", changing.delete_group),
    PageRoute("GET", _GROUP + "/guarantees", explaining.guarantees),
    PageRoute("GET", _GROUP + "/why/{question}", explaining.why_group),
    PageRoute("GET", "/schemas", schemas.schemas),
    PageRoute("GET", "/register-schema", schemas.register_form),
    PageRoute("POST", "/register-schema", schemas.register_schema),
    PageRoute("GET", _SUBJECT, schemas.subject),
    PageRoute("POST", _SUBJECT + "/delete", schemas.delete_schema),
    PageRoute("GET", "/connectors", connectors.connectors),
    PageRoute("GET", _CONNECTOR, connectors.connector),
    PageRoute("POST", _CONNECTOR + "/act", connectors.act_on_connector),
    PageRoute("GET", "/transactions", cluster.transactions),
    PageRoute("POST", "/transactions/abort", cluster.abort_transaction),
    PageRoute("GET", "/nodes", cluster.nodes),
    PageRoute("GET", "/access", access.access),
    PageRoute("GET", "/journal", explaining.journal),
)

API: Final = (
    PageRoute("GET", "/search", overview.search, is_api=True),
    PageRoute("GET", "/doctor", overview.doctor_rows, is_api=True),
    PageRoute("GET", "/topics", topics.topic_rows, is_api=True),
    PageRoute("GET", _TOPIC, topics.topic_facts, is_api=True),
    PageRoute("GET", _TOPIC + "/configs", topics.config_rows, is_api=True),
    PageRoute("GET", _TOPIC + "/records", records.record_rows, is_api=True),
    PageRoute("GET", _RECORD + "/journey", explaining.journey_row, is_api=True),
    PageRoute("GET", "/groups", groups.group_rows, is_api=True),
    PageRoute("GET", _GROUP + "/why/{question}", explaining.why_group_row, is_api=True),
    PageRoute("GET", "/transactions", cluster.transaction_rows, is_api=True),
)

ROUTES: Final = (*_PAGES, *API)
