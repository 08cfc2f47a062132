"""`ottla log`: what is in the files of a log, without a server."""

import json
from pathlib import Path

import click

from ottla.cli.failure import Failure
from ottla.cli.output import json_option


@click.group()
def log() -> None:
    """The files of a log directory."""


@log.command()
@click.argument("paths", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@json_option
@click.option("--records", "with_records", is_flag=True, help="Show records, too, not only their batches.")
def dump(paths: tuple[Path, ...], as_json: bool, with_records: bool) -> None:
    """Say in words what is in PATHS: files of a log, or directories of a partition.

    Segments, indexes, snapshots, checkpoints, the metadata log and its snapshots, what coordinators wrote.
    """
    from ottla.cli.dump import dump_file, is_known

    for path in paths:
        files = sorted(file for file in path.iterdir() if is_known(file)) if path.is_dir() else [path]
        if not files:
            raise Failure(
                f"{path} has no files of a log: name the directory of a partition, as in DATA/orders-0"
            )
        for file in files:
            if not is_known(file):
                raise Failure(f"{file} is no file of a log that Ottla or Apache Kafka writes")
            if not as_json:
                click.echo(f"{file}:")
            for item in dump_file(file, with_records=with_records):
                if as_json:
                    click.echo(json.dumps({"file": str(file), **item.facts}, default=str))
                else:
                    click.echo(f"  {item.words}")
