"""All routes of the REST API. The reference page is written from this list."""

from typing import Final

from ottla.connect.serving import handlers, offsets
from ottla.satellite.app import Route

_ONE: Final = "/connectors/{connector}"
_TASKS: Final = f"{_ONE}/tasks"
_PLUGINS: Final = "/connector-plugins"
_LOGGERS: Final = "/admin/loggers"

ROUTES: Final = (
    Route("GET", "/", handlers.get_root),
    Route("GET", "/health", handlers.get_health),
    Route("GET", "/connectors", handlers.list_connectors, ("expand",)),
    Route("POST", "/connectors", handlers.create_connector, is_led=True),
    Route("GET", _ONE, handlers.get_connector),
    Route("DELETE", _ONE, handlers.delete_connector, is_led=True),
    Route("GET", f"{_ONE}/config", handlers.get_config),
    Route("PUT", f"{_ONE}/config", handlers.put_config, is_led=True),
    Route("PATCH", f"{_ONE}/config", handlers.patch_config, is_led=True),
    Route("GET", f"{_ONE}/status", handlers.get_status),
    Route("PUT", f"{_ONE}/pause", handlers.pause_connector, is_led=True),
    Route("PUT", f"{_ONE}/resume", handlers.resume_connector, is_led=True),
    Route("PUT", f"{_ONE}/stop", handlers.stop_connector, is_led=True),
    Route("POST", f"{_ONE}/restart", handlers.restart_connector, ("includeTasks", "onlyFailed"), is_led=True),
    Route("GET", _TASKS, handlers.list_tasks),
    Route("POST", _TASKS, handlers.put_tasks),
    Route("GET", f"{_TASKS}/{{task}}/status", handlers.get_task_status),
    Route("POST", f"{_TASKS}/{{task}}/restart", handlers.restart_task),
    Route("PUT", f"{_ONE}/fence", handlers.fence_connector),
    Route("GET", f"{_ONE}/offsets", offsets.get_offsets),
    Route("PATCH", f"{_ONE}/offsets", offsets.alter_offsets, is_led=True),
    Route("DELETE", f"{_ONE}/offsets", offsets.reset_offsets, is_led=True),
    Route("GET", f"{_ONE}/topics", handlers.get_topics),
    Route("PUT", f"{_ONE}/topics/reset", handlers.reset_topics),
    Route("GET", _PLUGINS, handlers.get_plugins, ("connectorsOnly",)),
    Route("GET", f"{_PLUGINS}/{{plugin}}/config", handlers.get_plugin_config, ("version",)),
    Route("PUT", f"{_PLUGINS}/{{plugin}}/config/validate", handlers.validate_config),
    Route("GET", _LOGGERS, handlers.list_loggers),
    Route("GET", f"{_LOGGERS}/{{logger}}", handlers.get_logger),
    Route("PUT", f"{_LOGGERS}/{{logger}}", handlers.set_logger, ("scope",)),
)
