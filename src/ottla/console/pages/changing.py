"""Changes: each form leads to a plan, and only the plan has the button that does it."""

from collections.abc import Sequence
from typing import Any

from starlette.responses import Response

from ottla.client.errors import ClientError
from ottla.console.looks.changing import (
    RESETS,
    ResetWish,
    UnreadableChange,
    carry_out_reset,
    plan_configs,
    plan_loss,
    plan_reset,
    read_configs,
    read_count,
)
from ottla.console.looks.groups import SHARE
from ottla.console.looks.topic import look_at_topic
from ottla.console.pages.records import now_ms
from ottla.console.serving.app import command_text
from ottla.console.serving.call import Call
from ottla.console.serving.failures import failure_of
from ottla.wire.config_kinds import ResourceType


def _is_sure(call: Call) -> bool:
    return call.field("sure") == "yes"


# Topics


async def create_form(call: Call) -> Response:
    """Ask for a name and sizes."""
    return _creating(call, {})


def _creating(call: Call, fields: dict[str, str], **values: Any) -> Response:
    shown = {"reason": None, "plan": None, "command": None, **values}
    status = 400 if shown["reason"] else 200
    return call.page("create_topic.html", status, place="topics", fields=fields, **shown)


async def create_topic(call: Call) -> Response:
    """Show what would be created, as the brokers would, and create it when that was seen."""
    fields = {name: call.field(name).strip() for name in ("name", "partitions", "replicas", "configs")}
    try:
        partitions = read_count(fields["partitions"], "partitions")
        replicas = read_count(fields["replicas"], "replicas")
        configs = {name: value or "" for name, value in read_configs(fields["configs"]).items()}
        plan = await call.visit.access.admin.topics.create(
            fields["name"],
            partitions=partitions,
            replication_factor=replicas,
            configs=configs,
            validate_only=not _is_sure(call),
        )
    except (UnreadableChange, ClientError) as error:
        return _creating(call, fields, reason=_sentence(call, error))
    if _is_sure(call):
        call.visit.topics.forget()
        return call.see("topics", fields["name"])
    words = ["topic", "create", fields["name"]]
    words += ["--partitions", str(partitions)] if partitions is not None else []
    words += ["--replication-factor", str(replicas)] if replicas is not None else []
    words += [word for name, value in configs.items() for word in ("--config", f"{name}={value}")]
    return _creating(call, fields, plan=plan, configs=configs, command=command_text(call.cluster, *words))


def _sentence(call: Call, error: UnreadableChange | ClientError) -> str:
    if isinstance(error, UnreadableChange):
        return str(error)
    failure = failure_of(error, call.visit.user)
    return failure.sentence if failure.next_step is None else f"{failure.sentence}. {failure.next_step}"


async def change_form(call: Call) -> Response:
    """Show what can be changed of a topic."""
    return await _changing(call)


async def _changing(call: Call, **values: Any) -> Response:
    name = call.path["topic"]
    look = await look_at_topic(call.visit.access, name)
    shown = {"reason": None, "plan": None, "command": None, "what": "", "given_": {}, **values}
    status = 400 if shown["reason"] else 200
    return call.page(
        "change_topic.html", status, place="topics", tab="change", topic=name, look=look, **shown
    )


async def change_topic(call: Call) -> Response:
    """Show the plan of a change, and carry it out when that was seen."""
    what = call.field("what")
    given = {name: call.field(name) for name in ("partitions", "configs", "name")}
    changes = {
        "partitions": _change_partitions,
        "configs": _change_configs,
        "empty": _empty_topic,
        "delete": _delete_topic,
    }
    try:
        return await changes.get(what, _nothing_chosen)(call)
    except (UnreadableChange, ClientError) as error:
        return await _changing(call, reason=_sentence(call, error), what=what, given_=given)


async def _nothing_chosen(_call: Call) -> Response:
    raise UnreadableChange("choose what to change")


async def _change_partitions(call: Call) -> Response:
    name, total = call.path["topic"], read_count(call.field("partitions"), "partitions")
    if total is None:
        raise UnreadableChange("say how many partitions there are to be")
    await call.visit.access.admin.topics.add_partitions(name, total, validate_only=not _is_sure(call))
    if _is_sure(call):
        call.visit.topics.forget()
        return call.see("topics", name)
    command = command_text(call.cluster, "topic", "alter", name, "--partitions", str(total))
    return await _changing(
        call, what="partitions", plan=total, command=command, given_={"partitions": str(total)}
    )


async def _change_configs(call: Call) -> Response:
    name, text = call.path["topic"], call.field("configs")
    changes = read_configs(text)
    if not changes:
        raise UnreadableChange("say which configs to change: key=value, one in a line")
    access = call.visit.access
    steps = await plan_configs(access, name, changes)
    if _is_sure(call):
        await access.admin.configs.alter(ResourceType.TOPIC, name, changes)
        return call.see("topics", name, "configs")
    words = ["topic", "alter", name]
    for key, value in changes.items():
        words += ["--unset", key] if value is None else ["--config", f"{key}={value}"]
    command = command_text(call.cluster, *words)
    return await _changing(call, what="configs", plan=steps, command=command, given_={"configs": text})


async def _loss(call: Call) -> Any:
    look = await look_at_topic(call.visit.access, call.path["topic"])
    groups: list[str] = []
    try:
        seen = await call.visit.groups.get(5.0)
        if seen is not None:
            groups = sorted(
                name for name, topics in seen.value.committed.items() if call.path["topic"] in topics
            )
    except ClientError:
        # Who may not see groups may delete a topic all the same.
        groups = []
    return plan_loss(look, groups)


async def _empty_topic(call: Call) -> Response:
    name = call.path["topic"]
    if _is_sure(call) and _named(call):
        (await call.visit.access.admin.records.truncate(name)).check()
        return call.see("topics", name)
    command = command_text(call.cluster, "topic", "truncate", name)
    return await _changing(call, what="empty", plan=await _loss(call), command=command)


async def _delete_topic(call: Call) -> Response:
    name = call.path["topic"]
    if _is_sure(call) and _named(call):
        await call.visit.access.admin.topics.delete(name)
        call.visit.topics.forget()
        return call.see("topics")
    command = command_text(call.cluster, "topic", "delete", name)
    return await _changing(call, what="delete", plan=await _loss(call), command=command)


def _named(call: Call) -> bool:
    """Say whether the name was typed of what is to be lost. Raises UnreadableChange."""
    if call.field("name") != call.path["topic"]:
        raise UnreadableChange("type the name of the topic to say that you mean it: nothing was done")
    return True


# Groups


async def reset_form(call: Call) -> Response:
    """Ask where a group is to go on."""
    return await _resetting(call, ResetWish("earliest", "", call.text("topic")))


async def _resetting(call: Call, wish: ResetWish, **values: Any) -> Response:
    name = call.path["group"]
    topics = await _topics_of(call, name)
    chosen = wish.topic or (topics[0] if topics else "")
    shown = {"reason": None, "plan": None, "command": None, **values}
    status = 400 if shown["reason"] else 200
    return call.page(
        "reset_group.html",
        status,
        place="groups",
        group=name,
        wish=wish._replace(topic=chosen),
        topics=topics,
        resets=RESETS,
        **shown,
    )


async def _topics_of(call: Call, name: str) -> Sequence[str]:
    seen = await call.visit.groups.get(5.0)
    return [] if seen is None else sorted(seen.value.committed.get(name, {}))


async def reset_group(call: Call) -> Response:
    """Show the plan, and carry it out when that was seen."""
    name = call.path["group"]
    wish = ResetWish(call.field("to"), call.field("number"), call.field("topic").strip())
    access = call.visit.access
    try:
        is_share = any(one.group_id == name for one in await access.admin.groups.list(types=[SHARE]))
        steps = await plan_reset(access, name, wish, is_share, now_ms())
        if _is_sure(call):
            await carry_out_reset(access, name, steps, is_share)
            call.visit.groups.forget()
            return call.see("groups", name)
    except (UnreadableChange, ClientError) as error:
        return await _resetting(call, wish, reason=_sentence(call, error))
    option = {
        "earliest": ["--to-earliest"],
        "latest": ["--to-latest"],
        "time": ["--to-time", wish.number],
        "offset": ["--to-offset", wish.number],
        "shift": [f"--shift-by={wish.number}"],
    }[wish.to]
    noun = "share" if is_share else "group"
    command = command_text(call.cluster, noun, "reset", name, "--topic", wish.topic, *option, "--execute")
    return await _resetting(call, wish, plan=steps, command=command)


async def delete_group(call: Call) -> Response:
    """Ask once more, and delete a group with its offsets."""
    name = call.path["group"]
    wish = ResetWish("earliest", "", "")
    try:
        if _is_sure(call):
            await call.visit.access.admin.groups.delete(name)
            call.visit.groups.forget()
            return call.see("groups")
    except ClientError as error:
        return await _resetting(call, wish, reason=_sentence(call, error))
    command = command_text(call.cluster, "group", "delete", name)
    return await _resetting(call, wish, plan="delete", command=command)
