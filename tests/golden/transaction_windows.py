"""What Apache Kafka 4.3.1 answers at every moment of a transaction.

`tests/differential/test_transaction_windows.py` asks it again, and writes the table anew where it is told to.
"""

from collections.abc import Mapping
from pathlib import Path

TABLE = Path(__file__).with_name("transaction_windows.tsv")

Answers = dict[tuple[str, str], str]


def recorded_answers() -> Answers:
    """Return the answers, by question and by the state in which it was asked."""
    header, *rows = (line.split("\t") for line in TABLE.read_text().splitlines())
    return {
        (row[0], state): answer for row in rows for state, answer in zip(header[1:], row[1:], strict=True)
    }


def write_table(answers: Mapping[tuple[str, str], str]) -> None:
    """Write answers down: a line for each question, a column for each state."""
    states = list(dict.fromkeys(state for _, state in answers))
    questions = list(dict.fromkeys(question for question, _ in answers))
    rows = [["question", *states], *([one, *(answers[one, state] for state in states)] for one in questions)]
    TABLE.write_text("".join("\t".join(row) + "\n" for row in rows))
