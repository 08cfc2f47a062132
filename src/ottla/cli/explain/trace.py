"""`ottla trace`: the story of one record."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ottla.cli.explain.running import with_access
from ottla.cli.failure import Failure
from ottla.cli.output import json_option, say, show_one
from ottla.cli.profiles import cluster_options

if TYPE_CHECKING:
    from ottla.explain.access import Access
    from ottla.explain.evidence.logs import RecordFacts
    from ottla.explain.trace import Story


@click.command()
@click.argument("record", metavar="TOPIC[/PARTITION@OFFSET]")
@cluster_options
@json_option
@click.option("--key", help="Find the newest record with this key.")
@click.option("--header", metavar="NAME=VALUE", help="Find the newest record with this header.")
@click.option("--text", help="Find the newest record with this text in its value.")
@click.option(
    "--directory",
    type=click.Path(file_okay=False, exists=True, path_type=Path),
    help="The directory of pipelines: also say which batch of which pipeline read it, and what it wrote.",
)
@click.option(
    "--data",
    type=click.Path(file_okay=False, exists=True, path_type=Path),
    help="A data directory of a node: also say in which segment the record is, and at which byte.",
)
@click.option(
    "--svg",
    "picture",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    help="Also draw the story as a sequence diagram into this file.",
)
def trace(
    record: str,
    properties: dict[str, str],
    as_json: bool,
    key: str | None,
    header: str | None,
    text: str | None,
    directory: Path | None,
    data: Path | None,
    picture: Path | None,
) -> None:
    """Show the story of a record: its producer, when it could be read, and which groups have read it.

    A record is named by its address, such as payments/0@1050. With --key, --header or --text, the newest
    record of TOPIC that has it is taken.
    """
    topic, partition, offset = _address(record)
    if (offset is None) == (key is None and header is None and text is None):
        raise click.UsageError(
            "name the record as TOPIC/PARTITION@OFFSET, or name a TOPIC with --key, --header or --text"
        )

    async def work(access: "Access") -> "Story":
        from ottla.explain.trace import find_record, search_records, tell_story
        from ottla.model.ids import TopicPartition

        found: RecordFacts
        if offset is not None and partition is not None:
            found = await find_record(access, TopicPartition(topic, partition), offset)
        else:
            name, _, value = (header or "").partition("=")
            records = await search_records(
                access,
                topic,
                None if key is None else key.encode(),
                None if header is None else (name, value.encode()),
                None if text is None else text.encode(),
            )
            if not records:
                raise Failure(f"none of the newest records of {topic} has that")
            found = max(records, key=lambda item: (item.timestamp, item.offset))
        return await tell_story(access, found, directory, data)

    story = with_access(properties, work)
    if picture is not None:
        from ottla.explain.picture import draw

        picture.write_text(draw(story))
    if as_json:
        show_one(story.as_json(), as_json)
    else:
        say(story.render())


def _address(text: str) -> tuple[str, int | None, int | None]:
    name, at, offset = text.rpartition("@")
    if not at:
        return text, None, None
    topic, slash, partition = name.rpartition("/")
    if not slash or not partition.isdigit() or not offset.isdigit():
        raise click.BadParameter(f"{text!r} is not TOPIC/PARTITION@OFFSET", param_hint="RECORD")
    return topic, int(partition), int(offset)
