"""Runs the tests, as `make test` does: `python -m tests.suite.run --what storage --order 7`.

There are twice as many workers as cores: a test that starts a node waits for half of its time.
"""

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.suite.costs import print_tables
from tests.suite.selection import ROOT, UnknownSelection, pytest_arguments


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--what", default="")
    parser.add_argument("--order", default="1")
    parser.add_argument("--workers", type=int, default=2 * (os.cpu_count() or 1))
    parser.add_argument(
        "--costs", help="a folder for notes on what each test costs; tables of them are printed"
    )
    asked = parser.parse_args(arguments)
    try:
        selected = pytest_arguments(asked.what)
    except UnknownSelection as error:
        print(error, file=sys.stderr)
        return 2
    # A change is judged by the same order each time.
    workers = ["-n", str(asked.workers)]
    command = ["pytest", "-q", *workers, "--randomly-seed", asked.order, *selected]
    print(" ".join(command), flush=True)
    # `make` hands its variables down, and tests that draw requests take SEED for theirs.
    environment = {name: value for name, value in os.environ.items() if name != "SEED"}
    if asked.costs:
        shutil.rmtree(asked.costs, ignore_errors=True)
        environment["COSTS"] = asked.costs
    failed = subprocess.call([sys.executable, "-m", *command], cwd=ROOT, env=environment)
    if asked.costs:
        print_tables(Path(asked.costs))
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
