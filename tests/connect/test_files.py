"""Lines of a file to a topic and on to another file, through Kafka's file connectors."""

from pathlib import Path

from tests.connect.reading import read_topic
from tests.support.connect_process import ConnectProcess
from tests.support.ottla_node import OttlaNode

SOURCE = "org.apache.kafka.connect.file.FileStreamSourceConnector"
SINK = "FileStreamSink"


def _write(path: Path, numbers: range) -> None:
    with path.open("a") as file:
        file.writelines(f"line-{number}\n" for number in numbers)


def test_lines_go_to_a_topic_and_to_a_file_and_stay_through_a_pause(
    worker: ConnectProcess, node: OttlaNode, tmp_path: Path, name: str
) -> None:
    lines, copy = tmp_path / "lines", tmp_path / "copy"
    _write(lines, range(100))
    worker.create(f"{name}-in", connector_class=SOURCE, file=str(lines), topic=name)
    worker.create(f"{name}-out", connector_class=SINK, file=str(copy), topics=name)
    position = {"partition": {"filename": str(lines)}, "offset": {"position": 790}}
    worker.wait_for(f"/connectors/{name}-in/offsets", lambda answer: answer == {"offsets": [position]})

    assert worker.ask("PUT", f"/connectors/{name}-in/pause") == (202, None)
    worker.wait_for(
        f"/connectors/{name}-in/status",
        lambda answer: [task["state"] for task in answer["tasks"]] == ["PAUSED"],
    )
    _write(lines, range(100, 150))
    assert worker.ask("PUT", f"/connectors/{name}-in/resume") == (202, None)
    worker.wait_for(
        f"/connectors/{name}-in/offsets",
        lambda answer: answer["offsets"][0]["offset"]["position"] == lines.stat().st_size,
    )

    expected = [f"line-{number}" for number in range(150)]
    assert [record.value.decode() for record in read_topic(node.bootstrap, name, 150)] == expected
    # The last offset counts the markers of transactions as well.
    worker.wait_for(
        f"/connectors/{name}-out/offsets", lambda _: copy.exists() and copy.read_text().split() == expected
    )
    assert worker.ask("GET", f"/connectors/{name}-in/topics") == (200, {f"{name}-in": {"topics": [name]}})


def test_a_stopped_source_reads_again_from_an_offset_that_was_altered(
    worker: ConnectProcess, node: OttlaNode, tmp_path: Path, name: str
) -> None:
    lines = tmp_path / "lines"
    _write(lines, range(10))
    worker.create(name, connector_class=SOURCE, file=str(lines), topic=name)
    assert len(read_topic(node.bootstrap, name, 10)) == 10
    assert worker.ask("PUT", f"/connectors/{name}/stop") == (204, None)
    worker.wait_for(f"/connectors/{name}/status", lambda answer: answer["tasks"] == [])

    altered = {"offsets": [{"partition": {"filename": str(lines)}, "offset": {"position": 49}}]}
    status, answer = worker.ask("PATCH", f"/connectors/{name}/offsets", altered)
    assert (status, answer["message"]) == (
        200,
        "The offsets for this connector have been altered successfully",
    )
    assert worker.ask("GET", f"/connectors/{name}/offsets") == (200, altered)
    assert worker.ask("PUT", f"/connectors/{name}/resume") == (202, None)

    records = read_topic(node.bootstrap, name, 13)
    assert [record.value.decode() for record in records[10:]] == ["line-7", "line-8", "line-9"]


def test_what_cannot_be_read_goes_to_the_dead_letters_or_fails_the_task(
    worker: ConnectProcess, node: OttlaNode, tmp_path: Path, name: str
) -> None:
    lines = tmp_path / "lines"
    lines.write_text('{"a": 1}\nnonsense\n')
    worker.create(f"{name}-in", connector_class=SOURCE, file=str(lines), topic=name)
    json_values = {
        "connector_class": SINK,
        "topics": name,
        "value_converter": "org.apache.kafka.connect.json.JsonConverter",
        "value_converter_schemas_enable": "false",
    }
    worker.create(f"{name}-strict", file=str(tmp_path / "strict"), **json_values)
    worker.create(
        f"{name}-lenient",
        file=str(tmp_path / "lenient"),
        errors_tolerance="all",
        errors_deadletterqueue_topic_name=f"{name}-dead",
        errors_deadletterqueue_topic_replication_factor="1",
        errors_deadletterqueue_context_headers_enable="true",
        **json_values,
    )

    failed = worker.wait_for(
        f"/connectors/{name}-strict/status", lambda answer: answer["tasks"][0]["state"] == "FAILED"
    )
    assert "Tolerance exceeded in error handler" in failed["tasks"][0]["trace"]
    (letter,) = read_topic(node.bootstrap, f"{name}-dead", 1)
    headers = {key: (value or b"").decode() for key, value in letter.headers}
    assert letter.value == b"nonsense"
    assert headers["__connect.errors.topic"] == name
    assert headers["__connect.errors.offset"] == "1"
    assert headers["__connect.errors.stage"] == "VALUE_CONVERTER"
    assert headers["__connect.errors.connector.name"] == f"{name}-lenient"
    worker.wait_for(f"/connectors/{name}-lenient/status", lambda _: (tmp_path / "lenient").exists())
    worker.wait_for("/", lambda _: (tmp_path / "lenient").read_text() == '{"a":1}\n')


def test_a_task_that_failed_is_tried_again_and_says_why(
    worker: ConnectProcess, node: OttlaNode, tmp_path: Path, name: str
) -> None:
    lines, missing = tmp_path / "lines", tmp_path / "later" / "copy"
    worker.create(f"{name}-out", connector_class=SINK, file=str(missing), topics=name)
    failed = worker.wait_for(
        f"/connectors/{name}-out/status", lambda answer: answer["tasks"][0]["state"] == "FAILED"
    )
    assert str(missing) in failed["tasks"][0]["trace"]
    assert "The next attempt is in" in failed["tasks"][0]["trace"]

    missing.parent.mkdir()

    worker.wait_until_running(f"{name}-out")
    _write(lines, range(3))
    worker.create(f"{name}-in", connector_class=SOURCE, file=str(lines), topic=name)
    worker.wait_for("/", lambda _: missing.read_text().split() == ["line-0", "line-1", "line-2"])
