"""All routes of the REST API. The reference page is written from this list."""

from typing import Final

from ottla.registry.serving import handlers
from ottla.satellite.app import Route

_PAGE: Final = ("offset", "limit")
_VERSIONS: Final = "/subjects/{subject}/versions"

ROUTES: Final = (
    Route("GET", "/", handlers.get_root),
    Route("POST", "/", handlers.get_root),
    Route("GET", "/health", handlers.get_health),
    Route("GET", "/v1/metadata/id", handlers.get_metadata_id),
    Route("GET", "/v1/metadata/version", handlers.get_metadata_version),
    Route("GET", "/schemas/types", handlers.get_types),
    Route(
        "GET",
        "/schemas",
        handlers.get_schemas,
        ("subjectPrefix", "aliases", "deleted", "latestOnly", "ruleType", *_PAGE),
    ),
    Route(
        "GET",
        "/schemas/ids/{id}",
        handlers.get_schema_by_id,
        ("subject", "format", "referenceFormat", "fetchMaxId"),
    ),
    Route("GET", "/schemas/ids/{id}/schema", handlers.get_schema_text_by_id, ("subject", "format")),
    Route("GET", "/schemas/ids/{id}/subjects", handlers.get_subjects_of_id, ("subject", "deleted", *_PAGE)),
    Route("GET", "/schemas/ids/{id}/versions", handlers.get_versions_of_id, ("subject", "deleted", *_PAGE)),
    Route("GET", "/schemas/guids/{guid}", handlers.get_schema_by_guid, ("format",)),
    Route("GET", "/schemas/guids/{guid}/ids", handlers.get_ids_of_guid),
    Route("GET", "/subjects", handlers.get_subjects, ("subjectPrefix", "deleted", "deletedOnly", *_PAGE)),
    Route("POST", "/subjects/{subject}", handlers.look_up_schema, ("normalize", "deleted", "format")),
    Route("DELETE", "/subjects/{subject}", handlers.delete_subject, ("permanent",)),
    Route(
        "GET",
        "/subjects/{subject}/metadata",
        handlers.get_latest_with_metadata,
        ("key", "value", "deleted", "format"),
    ),
    Route(
        "GET",
        _VERSIONS,
        handlers.get_versions,
        ("deleted", "deletedOnly", "deletedAsNegative", *_PAGE),
    ),
    Route("POST", _VERSIONS, handlers.register_schema, ("normalize", "format")),
    Route(
        "GET",
        f"{_VERSIONS}/{{version}}",
        handlers.get_version,
        ("format", "deleted", "referenceFormat"),
    ),
    Route("DELETE", f"{_VERSIONS}/{{version}}", handlers.delete_version, ("permanent",)),
    Route("GET", f"{_VERSIONS}/{{version}}/schema", handlers.get_version_text, ("format", "deleted")),
    Route("GET", f"{_VERSIONS}/{{version}}/referencedby", handlers.get_referenced_by, ("deleted", *_PAGE)),
    Route("POST", f"/compatibility{_VERSIONS}", handlers.check_subject, ("normalize", "verbose")),
    Route("POST", f"/compatibility{_VERSIONS}/{{version}}", handlers.check_version, ("normalize", "verbose")),
    Route("GET", "/config", handlers.get_config, ("defaultToGlobal",)),
    Route("PUT", "/config", handlers.set_config),
    Route("DELETE", "/config", handlers.delete_config),
    Route("GET", "/config/{subject}", handlers.get_config, ("defaultToGlobal",)),
    Route("PUT", "/config/{subject}", handlers.set_config),
    Route("DELETE", "/config/{subject}", handlers.delete_config),
    Route("GET", "/mode", handlers.get_mode, ("defaultToGlobal",)),
    Route("PUT", "/mode", handlers.set_mode, ("force",)),
    Route("DELETE", "/mode", handlers.delete_mode, ("recursive",)),
    Route("GET", "/mode/{subject}", handlers.get_mode, ("defaultToGlobal",)),
    Route("PUT", "/mode/{subject}", handlers.set_mode, ("force",)),
    Route("DELETE", "/mode/{subject}", handlers.delete_mode, ("recursive",)),
    Route("GET", "/contexts", handlers.get_contexts, ("contextPrefix", *_PAGE)),
    Route("DELETE", "/contexts/{context}", handlers.delete_context),
    Route("GET", "/exporters", handlers.refuse_exporters),
    Route("POST", "/exporters", handlers.refuse_exporters),
)
