"""Our error codes are Apache Kafka's, and clients may do about each what they may do there."""

from pathlib import Path

from ottla.wire.error_code import ERROR_CODE_BY_NUMBER, ErrorCode

TABLE = Path(__file__).parent / "error_codes.tsv"
"""Number, name, whether a client may try again, whether it should refresh its metadata before."""


def test_error_codes_are_kafkas() -> None:
    ours = [
        f"{code.value}\t{code.name}\t{_yes_no(code.retriable)}\t{_yes_no(code.refreshes_metadata)}"
        for code in ErrorCode
    ]
    assert len(ours) == 135
    assert ours == TABLE.read_text().splitlines()


def test_a_number_nobody_knows_is_an_unknown_server_error() -> None:
    # So do Kafka's own clients: a newer broker may answer with codes that did not exist when we were written.
    assert ERROR_CODE_BY_NUMBER[9999] is ErrorCode.UNKNOWN_SERVER_ERROR
    assert all(ERROR_CODE_BY_NUMBER[code] is code for code in ErrorCode)


def _yes_no(value: bool) -> str:
    return "yes" if value else "no"
