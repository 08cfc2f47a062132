"""What each route does."""

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

from ottla import __version__
from ottla.client import surroundings
from ottla.connect.configs.shared_keys import CONNECTOR_CLASS, NAME
from ottla.connect.configs.validation import check_config, plugin_keys, validate
from ottla.connect.errors import ConnectError, RestError, not_found, unknown_connector
from ottla.connect.herding import decide
from ottla.connect.herding.units import Unit
from ottla.connect.loggers import ROOT, parse_level
from ottla.connect.plugins import PluginKind
from ottla.connect.serving.call import Answer, Call, as_config, nothing
from ottla.connect.store.configs import PAUSED, STARTED, STOPPED
from ottla.connect.store.records import logger_record

_CONNECTORS: Final = (PluginKind.SOURCE, PluginKind.SINK)
_HEALTHY: Final = "Worker has completed startup and is ready to handle requests."


# The worker


async def get_root(call: Call) -> Answer:
    """Say which version this is, and of which cluster."""
    cluster_id = call.worker.cluster_id
    return Answer(body={"version": __version__, "commit": "ottla", "kafka_cluster_id": cluster_id})


async def get_health(_call: Call) -> Answer:
    """Say whether the worker serves requests."""
    return Answer(body={"status": "healthy", "message": _HEALTHY})


# Plugins


async def get_plugins(call: Call) -> Answer:
    """List the connectors, or all plugins."""
    only_connectors = call.flag("connectorsOnly", default=True)
    plugins = call.worker.plugins.all
    return Answer(
        body=[item.listing() for item in plugins if not only_connectors or item.kind in _CONNECTORS]
    )


async def get_plugin_config(call: Call) -> Answer:
    """List the keys of a plugin."""
    version = call.text("version")
    if version[:1] in ("[", "(") and version[-1:] not in ("]", ")"):
        raise RestError(400, f"Invalid version specification: {version}")
    name = call.path["plugin"]
    plugin = call.worker.plugins.find(name)
    if plugin is None:
        raise RestError(404, f"Unknown plugin {name}.")
    keys = plugin_keys(call.worker.plugins, plugin, call.worker.settings.defaults)
    return Answer(body=[key.definition() for key in keys])


async def validate_config(call: Call) -> Answer:
    """Check a configuration without using it."""
    config, name = call.config(), call.path["plugin"]
    given = config.get(CONNECTOR_CLASS)
    worker = call.worker
    if given is not None and worker.plugins.find_connector(given) is not None:
        plugin = worker.plugins.find_connector(name)
        if plugin is None or plugin is not worker.plugins.find_connector(given):
            raise RestError(400, f"Included connector type {given} does not match request type {name}")
    try:
        resolved = _resolved(call, config)
    except RestError as error:
        raise RestError(500, f"org.apache.kafka.common.config.ConfigException: {error.message}") from error
    try:
        answer = validate(
            worker.plugins, config, worker.settings.defaults, resolved, worker.settings.permissions
        )
        for item in answer["configs"]:
            item["value"]["errors"] = [worker.secrets.mask(text) for text in item["value"]["errors"]]
        return Answer(body=answer)
    except RestError as error:
        # Kafka's worker answers with the name of its exception, and tools look for the text.
        raise RestError(
            500, f"org.apache.kafka.connect.runtime.rest.errors.BadRequestException: {error.message}"
        ) from error


# Connectors


async def list_connectors(call: Call) -> Answer:
    """List the connectors, or what is known of each."""
    expansions = call.query.get("expand")
    names = sorted(call.worker.configs.connectors)
    if expansions is None:
        return Answer(body=names)
    return Answer(body={name: _expanded(call, name, expansions) for name in names})


def _expanded(call: Call, name: str, expansions: list[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if "info" in expansions:
        found["info"] = _info(call, name)
    if "status" in expansions:
        try:
            found["status"] = decide.status_answer(call.worker.store.statuses, name, _kind(call, name))
        except RestError:
            return found
    return found


async def create_connector(call: Call) -> Answer:
    """Create a connector."""
    body = call.json()
    if not isinstance(body, dict) or not set(body) <= {"name", "config", "initial_state"}:
        raise RestError(500, "Cannot read the body: it has other fields than name, config and initial_state")
    if not isinstance(body.get("config"), dict):
        raise RestError(500, "Cannot read the body: it has no config")
    initial = _initial_state(body.get("initial_state"))
    given = body.get("name")
    if given is not None and not isinstance(given, str):
        raise RestError(500, "Cannot read the body: the name is not a text")
    name = (given or "").strip()
    config = _named(name, as_config(body["config"]))
    _check(call, config)
    configs = call.worker.configs
    await call.worker.change(lambda: decide.decide_create(configs, name, config, initial))
    return Answer(201, _info(call, name), _location(call, name))


def _resolved(call: Call, config: Mapping[str, str | None]) -> dict[str, str | None]:
    """Return a configuration with the values of its variables. Raises RestError."""
    try:
        known = call.worker.resolve({key: text for key, text in config.items() if text is not None})
    except ConnectError as error:
        raise RestError(500, str(error)) from error
    return {**config, **known}


def _check(call: Call, config: Mapping[str, str | None]) -> None:
    """Refuse a configuration that cannot be used. Raises RestError."""
    settings = call.worker.settings
    check_config(call.worker.plugins, _resolved(call, config), settings.defaults, settings.permissions)


def _initial_state(value: Any) -> str | None:
    if value is None:
        return None
    state = {"RUNNING": STARTED, "PAUSED": PAUSED, "STOPPED": STOPPED}.get(str(value).upper())
    if state is None:
        raise RestError(
            500, f"Cannot read the body: initial_state is {value!r}, not RUNNING, PAUSED or STOPPED"
        )
    return None if state == STARTED else state


def _named(name: str, config: dict[str, str | None]) -> dict[str, str | None]:
    """Return a configuration with the name of its connector, which must not be another one."""
    inside = config.get(NAME)
    if inside is not None and inside != name:
        raise RestError(
            400, f"Connector name configuration ({inside}) doesn't match connector name in the URL ({name})"
        )
    return {**config, NAME: name}


def _location(call: Call, name: str) -> dict[str, str]:
    return {"Location": f"{call.worker.url}/connectors/{quote(name, safe=':')}"}


async def get_connector(call: Call) -> Answer:
    """Show a connector with its configuration and tasks."""
    return Answer(body=_info(call, call.connector))


async def get_config(call: Call) -> Answer:
    """Show the configuration of a connector."""
    return Answer(body=_config(call, call.connector))


async def put_config(call: Call) -> Answer:
    """Create a connector, or give it another configuration."""
    name = call.connector
    config = _named(name, call.config())
    _check(call, config)
    existed = False

    def decided() -> decide.Records:
        nonlocal existed
        existed = name in call.worker.configs.connectors
        return decide.decide_configure(name, config)

    await call.worker.change(decided)
    if existed:
        return Answer(200, _info(call, name))
    return Answer(201, _info(call, name), _location(call, name))


async def patch_config(call: Call) -> Answer:
    """Change some keys of a configuration; null removes a key."""
    name, patch = call.connector, call.config()

    def decided() -> decide.Records:
        config = decide.patched(call.worker.configs, name, patch)
        _check(call, config)
        return decide.decide_configure(name, config)

    await call.worker.change(decided)
    return Answer(200, _info(call, name))


async def delete_connector(call: Call) -> Answer:
    """Delete a connector. Its offsets stay."""
    await call.worker.change(lambda: decide.decide_delete(call.worker.configs, call.connector))
    return nothing(204)


async def get_status(call: Call) -> Answer:
    """Say how a connector and its tasks do."""
    name = call.connector
    return Answer(body=decide.status_answer(call.worker.store.statuses, name, _kind(call, name)))


async def pause_connector(call: Call) -> Answer:
    """Pause a connector: its tasks stay, and do nothing."""
    await _aim(call, PAUSED)
    return nothing(202)


async def resume_connector(call: Call) -> Answer:
    """Let a connector go on that was paused or stopped."""
    await _aim(call, STARTED)
    return nothing(202)


async def stop_connector(call: Call) -> Answer:
    """Stop a connector: its tasks go away, its configuration stays."""
    await _aim(call, STOPPED)
    return nothing(204)


async def _aim(call: Call, target: str) -> None:
    await call.worker.change(lambda: decide.decide_target_state(call.worker.configs, call.connector, target))


async def restart_connector(call: Call) -> Answer:
    """Restart a connector; with includeTasks also its tasks, with onlyFailed only what has failed."""
    name = call.connector
    tasks, failed = call.flag("includeTasks"), call.flag("onlyFailed")
    if name not in call.worker.configs.connectors:
        raise unknown_connector(name, ":")
    answer = None
    if tasks or failed:
        kind = _kind(call, name)
        answer = decide.restart_answer(
            call.worker.store.statuses, name, kind, include_tasks=tasks, only_failed=failed
        )
    await call.worker.change(
        lambda: decide.decide_restart(call.worker.configs, name, include_tasks=tasks, only_failed=failed)
    )
    return nothing(204) if answer is None else Answer(202, answer)


# Tasks


async def list_tasks(call: Call) -> Answer:
    """List the tasks of a connector with their configurations."""
    name = call.connector
    _config(call, name)
    return Answer(
        body=[
            {"id": {"connector": name, "task": number}, "config": config}
            for number, config in enumerate(call.worker.configs.tasks.get(name, []))
        ]
    )


async def put_tasks(call: Call) -> Answer:
    """Take the tasks of a connector from the worker that runs it. Internal and signed."""
    call.worker.internal.check(call.headers, call.data, is_forwarded=call.is_forwarded)
    tasks = call.json()
    if not isinstance(tasks, list) or not all(isinstance(task, dict) for task in tasks):
        raise RestError(500, "Cannot read the body: it is not a list of configurations")
    await call.worker.supervisor.submit_tasks(call.connector, tasks)
    return nothing(204)


async def fence_connector(call: Call) -> Answer:
    """Fence the earlier tasks of a source, before one of the next starts. Internal and signed."""
    call.worker.internal.check(call.headers, call.data, is_forwarded=call.is_forwarded)
    await call.worker.fencing.fence(call.connector)
    return nothing(204)


async def get_task_status(call: Call) -> Answer:
    """Say how a task does."""
    status = call.worker.store.statuses.find(call.connector, call.task)
    if status is None:
        raise RestError(404, f"No status found for task {call.connector}-{call.task}")
    return Answer(body={"id": call.task, **status.answer()})


async def restart_task(call: Call) -> Answer:
    """Restart a task, on the worker that runs it."""
    name, task = call.connector, call.task
    configs = call.worker.configs
    if name not in configs.connectors:
        raise unknown_connector(name, ":")
    if task >= len(configs.tasks.get(name, [])):
        raise RestError(404, f"Unknown task: {name}-{task}")
    if call.worker.supervisor.restart_unit(Unit(name, task)):
        return nothing(204)
    status = call.worker.store.statuses.find(name, task)
    if status is None or status.worker_id == call.worker.worker_id or not call.flag("forward", default=True):
        raise RestError(
            409, "Cannot complete request because of a conflicting operation (e.g. worker rebalance)"
        )
    scheme = call.worker.url.partition("://")[0]
    url = f"{scheme}://{status.worker_id}"
    target = f"/connectors/{quote(name, safe=':')}/tasks/{task}/restart?forward=false"
    answer = await call.worker.internal.send("POST", url, target, b"", {})
    return nothing(answer.status_code)


# Topics


async def get_topics(call: Call) -> Answer:
    """List the topics that a connector has used."""
    _check_tracking(call)
    used = sorted(call.worker.store.statuses.topics.get(call.connector, {}))
    return Answer(body={call.connector: {"topics": used}})


async def reset_topics(call: Call) -> Answer:
    """Forget the topics that a connector has used."""
    _check_tracking(call)
    if not call.worker.settings.topic_tracking_reset:
        raise RestError(403, "Topic tracking reset is disabled.")
    await call.worker.store.status_writer.forget_topics(call.connector)
    return nothing(202)


def _check_tracking(call: Call) -> None:
    if not call.worker.settings.topic_tracking:
        raise RestError(403, "Topic tracking is disabled.")


# Loggers


async def list_loggers(call: Call) -> Answer:
    """List the levels of logging."""
    return Answer(body=call.worker.store.loggers.all())


async def get_logger(call: Call) -> Answer:
    """Show a level of logging."""
    name = call.path["logger"]
    found = call.worker.store.loggers.find(name)
    if found is None:
        raise RestError(404, f"Logger {name} not found.")
    return Answer(body=found)


async def set_logger(call: Call) -> Answer:
    """Set a level of logging, on this worker or with scope=cluster on all."""
    body = call.json()
    given = body.get("level") if isinstance(body, dict) else None
    if given is None:
        raise RestError(400, "Desired 'level' parameter was not specified in request.")
    level = parse_level(str(given))
    if level is None:
        raise RestError(404, f"invalid log level '{given}'.")
    namespace = call.path["logger"]
    if call.text("scope", "worker").lower() == "cluster":
        await call.worker.change(lambda: [logger_record(namespace, level)])
        return nothing(204)
    return Answer(body=call.worker.store.loggers.set(namespace or ROOT, level, surroundings.now_ms()))


def _config(call: Call, name: str) -> Mapping[str, str]:
    config = call.worker.configs.connectors.get(name)
    if config is None:
        raise not_found(name)
    return config


def _kind(call: Call, name: str) -> str:
    return call.worker.kind_of(call.worker.configs.connectors.get(name, {}))


def _info(call: Call, name: str) -> dict[str, Any]:
    config = _config(call, name)
    tasks = range(len(call.worker.configs.tasks.get(name, [])))
    return {
        "name": name,
        "config": config,
        "tasks": [{"connector": name, "task": task} for task in tasks],
        "type": call.worker.kind_of(config),
    }
