"""`ottla log`: what is in the files of a log, without a server: shown, checked, saved."""

import json
from pathlib import Path

import click

from ottla.cli.failure import Failure
from ottla.cli.output import json_option, say, show_rows


@click.group()
def log() -> None:
    """Inspect the files of a log directory."""


@log.command()
@click.argument("paths", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@json_option
@click.option("--records", "with_records", is_flag=True, help="Show records, not only their batches.")
def dump(paths: tuple[Path, ...], as_json: bool, with_records: bool) -> None:
    """Print the contents of PATHS as text: files of a log, or partition directories.

    Segments, indexes, snapshots, checkpoints, the metadata log and its snapshots, what coordinators wrote.
    """
    from ottla.cli.directories.dump import dump_file, is_known

    for path in paths:
        files = sorted(file for file in path.iterdir() if is_known(file)) if path.is_dir() else [path]
        if not files:
            raise Failure(
                f"{path} has no files of a log: name a partition directory, for example DATA/orders-0"
            )
        for file in files:
            if not is_known(file):
                raise Failure(f"{file} is not a log file of Ottla or Apache Kafka")
            if not as_json:
                say(f"{file}:")
            for item in dump_file(file, with_records=with_records):
                if as_json:
                    say(json.dumps({"file": str(file), **item.facts}, default=str))
                else:
                    say(f"  {item.words}")


@log.command()
@click.argument("paths", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@json_option
def verify(paths: tuple[Path, ...], as_json: bool) -> None:
    """Look for damage in PATHS: data directories, partition directories, or segments. Changes nothing.

    Checks every batch, index and snapshot. Data that an earlier start set aside is listed, but does not count
    as damage. Exits with 1 if something is damaged.
    """
    from ottla.cli.directories.segment_files import (
        Finding,
        partition_directories,
        verify_file,
        verify_partition,
    )

    findings: list[Finding] = []
    for path in paths:
        _check_unused(path)
        if path.is_dir():
            for directory in partition_directories(path):
                findings += verify_partition(directory)
        else:
            findings += verify_file(path)
    rows = [{"path": found.path, "damaged": found.is_damage, "what": found.what} for found in findings]
    show_rows(rows, as_json, "no damage found")
    if any(found.is_damage for found in findings):
        raise click.exceptions.Exit(Failure.exit_code)


@log.command()
@click.argument("paths", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option(
    "--damaged",
    "with_damaged",
    is_flag=True,
    help="Also print what can be read of batches with wrong checksums. Check it before you use it.",
)
def salvage(paths: tuple[Path, ...], with_damaged: bool) -> None:
    """Print the records of damaged files as JSON, one record per line.

    PATHS are segments, files that a start has set aside (`.damaged`), or directories with such files.
    `ottla produce --format json` writes the records to a topic again.
    """
    from ottla.cli.directories.segment_files import Salvage, is_kept, partition_directories
    from ottla.cli.records.templates import Printer, printer_for

    files: list[Path] = []
    for path in paths:
        _check_unused(path)
        if path.is_dir():
            for directory in partition_directories(path):
                files += sorted(file for file in directory.iterdir() if is_kept(file))
        else:
            files.append(path)
    if not files:
        raise Failure("no damaged data was kept there; name a segment to print its records")
    salvaged = Salvage()
    write: Printer = printer_for("json", None)
    for file in files:
        for record in salvaged.read(file, with_doubtful=with_damaged):
            click.echo(write(record), nl=False)
    rest = ""
    if salvaged.doubtful_records:
        told = "printed as well" if with_damaged else "--damaged prints them as well"
        rest = f"; {salvaged.doubtful_records} more are in batches with wrong checksums: {told}"
    say(
        f"{salvaged.records} sound records, {salvaged.unreadable_bytes} damaged bytes in "
        f"{len(files)} files{rest}",
        err=True,
    )


def _check_unused(path: Path) -> None:
    """Refuse to look at what a server is writing."""
    from ottla.cli.directories.directory_checks import is_locked
    from ottla.storage.names import LOCK_FILE

    for directory in (path, *path.absolute().parents[:2]):
        if (directory / LOCK_FILE).exists() and is_locked(directory / LOCK_FILE):
            raise Failure(f"a server is using {directory}: stop it first")
