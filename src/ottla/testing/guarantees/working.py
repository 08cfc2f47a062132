"""What the clients of a campaign do: one process after the other, each until its outcome is unknown.

These are coroutines, so that they run in a simulation as well as in threads with a loop of their own.
"""

from collections.abc import Awaitable, Callable
from typing import Any

from ottla.testing.guarantees.generator import Generator, Plan
from ottla.testing.guarantees.process import ClientFailed, Process, TransactionFailed
from ottla.testing.guarantees.recorder import Recorder

Connect = Callable[[str | None], Process]
"""Makes a process, given its transactional id if it has one. It is not started yet."""


async def work(connect: Connect, number: int, generator: Generator, recorder: Recorder) -> None:
    """Be one client after the other, until there is nothing left to do."""

    async def work_on(process: Process, name: int) -> None:
        await _assign(process.assign, name, generator.first_assignment(), recorder)
        while (plan := generator.next()) is not None:
            if plan.function == "assign":
                await _assign(process.assign, name, plan, recorder)
            elif not await _do(process.transact, name, plan, recorder):
                return

    while generator.left > 0:
        await _be_one_process(connect, f"guarantees-{number}", recorder, work_on)


async def work_plainly(connect: Connect, generator: Generator, recorder: Recorder) -> None:
    """Be one client without transactions after the other, until there is nothing left to do."""

    async def work_on(process: Process, name: int) -> None:
        await _assign(process.assign, name, generator.first_assignment(), recorder)
        while (plan := generator.next_plain()) is not None:
            if plan.function == "assign":
                await _assign(process.assign, name, plan, recorder)
            elif not await _do(process.do_plainly, name, plan, recorder):
                return

    while generator.plain_left > 0:
        await _be_one_process(connect, None, recorder, work_on)


async def copy(connect: Connect, generator: Generator, recorder: Recorder) -> None:
    """Be one copier after the other, until there is nothing left to do."""

    async def copy_on(process: Process, name: int) -> None:
        async def copy_once(plan: Plan, done: list[Any]) -> None:
            await process.copy(plan, done, generator.new_value)

        await _assign(process.assign_for_group, name, generator.first_group_assignment(), recorder)
        while (plan := generator.next_copy()) is not None:
            if plan.function == "assign":
                await _assign(process.assign_for_group, name, plan, recorder)
            elif not await _do(copy_once, name, plan, recorder):
                return

    while generator.left > 0:
        await _be_one_process(connect, "guarantees-copier", recorder, copy_on)


async def _be_one_process(
    connect: Connect,
    transactional_id: str | None,
    recorder: Recorder,
    work_on: Callable[[Process, int], Awaitable[None]],
) -> None:
    process = connect(transactional_id)
    try:
        await process.start()
        await work_on(process, recorder.new_process())
    except ClientFailed:
        # It did not start, or an assignment failed, or going back to where it was. Another process follows.
        pass
    finally:
        await process.close()


async def _assign(
    assign: Callable[[tuple[int, ...]], Awaitable[None]], name: int, plan: Plan, recorder: Recorder
) -> None:
    recorder.write(name, "invoke", "assign", list(plan.keys))
    await assign(plan.keys)
    recorder.write(name, "ok", "assign", list(plan.keys))


async def _do(
    carry_out: Callable[[Plan, list[Any]], Awaitable[None]], name: int, plan: Plan, recorder: Recorder
) -> bool:
    """Have a plan carried out. Returns whether the process can go on."""
    asked: list[Any] = [["poll"] if step is None else ["send", *step] for step in plan.steps]
    recorder.write(name, "invoke", plan.function, asked)
    done: list[Any] = []
    try:
        await carry_out(plan, done)
    except TransactionFailed as failed:
        # Steps that were not come to count as tried: somebody may read what they wrote.
        left = asked[len(done) :]
        recorder.write(name, failed.verdict.type, plan.function, done + left, str(failed))
        return not failed.verdict.needs_new_client
    recorder.write(name, "ok", plan.function, done)
    return True
