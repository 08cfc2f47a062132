"""How far a link is: by partition, in numbers that commands and metrics show."""

import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Any

from ottla.client import surroundings
from ottla.model.ids import TopicPartition
from ottla.model.uuid import ZERO_UUID, Uuid


@dataclass(slots=True)
class PartitionProgress:
    """One partition of the target. Offsets are -1 until they are known."""

    source: TopicPartition
    position: int = -1
    """From where on an exact copy fetches: ahead of `copied_to` while what was fetched is being written."""
    copied_to: int = -1
    """Where the copy ends, as the target has said. What is under way does not count."""
    source_start: int = -1
    source_end: int = -1
    bytes_copied: int = 0
    records_skipped: int = 0
    """Offsets that retention had removed from the source before they were copied."""
    error: str | None = None
    seen_at_ms: int = -1
    """When the source answered last."""
    source_id: Uuid = ZERO_UUID
    """The id of the topic that is copied."""
    copy_id: Uuid = ZERO_UUID
    """The id of the copy that ends at `copied_to`."""
    has_lost: bool = False
    """Whether the source is not what was copied. Then it is not copied until an operator decides."""
    halted: bool = False
    """Whether the target knows that, so that it holds after a restart."""

    @property
    def lag(self) -> int | None:
        """How many offsets the copy is behind; None if that is not known: not yet, or because of an error."""
        if self.error is not None or self.source_end < 0 or self.copied_to < 0:
            return None
        # What the source has removed can no longer be copied.
        return max(0, self.source_end - max(self.copied_to, self.source_start))


@dataclass(slots=True)
class Progress:
    """One link."""

    source_name: str
    target_name: str = ""
    is_exact: bool = True
    partitions: dict[TopicPartition, PartitionProgress] = field(default_factory=dict)
    topic_errors: dict[str, str] = field(default_factory=dict)
    """Why topics cannot be mirrored at all."""
    topic_ids: dict[str, Uuid] = field(default_factory=dict)
    """The topics of the source, as exact copies know them."""
    halted: dict[TopicPartition, str] = field(default_factory=dict)
    """What is not copied until an operator decides, as the target keeps it, and why."""
    errors_now: dict[str, str] = field(default_factory=dict)
    """What is wrong with the link as a whole now, by the work that failed."""
    last_error: str | None = None
    """What was wrong last. It stays when the link works again."""
    last_error_at_ms: int = -1
    errors: int = 0
    bytes_per_second: float = 0.0
    _bytes_before: int = 0
    _measured_at_s: float = 0.0

    @property
    def error(self) -> str | None:
        """Return what is wrong with the link as a whole now, if anything."""
        return "; ".join(dict.fromkeys(self.errors_now.values())) or None

    def note_error(self, work: str, error: str) -> None:
        """Take note that something went wrong. The next success of the same work ends that."""
        self.errors_now[work] = self.last_error = error
        self.last_error_at_ms = surroundings.now_ms()
        self.errors += 1

    def note_success(self, work: str) -> None:
        """Take note that some work does not fail, or not any more."""
        self.errors_now.pop(work, None)

    def measure(self, now_s: float) -> None:
        """Work out the throughput since the last call."""
        copied = sum(part.bytes_copied for part in self.partitions.values())
        if self._measured_at_s and now_s > self._measured_at_s:
            self.bytes_per_second = (copied - self._bytes_before) / (now_s - self._measured_at_s)
        self._bytes_before, self._measured_at_s = copied, now_s

    def as_json(self, now_ms: int) -> bytes:
        """Return what the target keeps of it."""
        return json.dumps(
            {
                "source": self.source_name,
                "exact": self.is_exact,
                "at_ms": now_ms,
                "bytes_per_second": round(self.bytes_per_second),
                "error": self.error,
                "last_error": self.last_error,
                "last_error_at_ms": self.last_error_at_ms,
                "topic_errors": self.topic_errors,
                "partitions": [
                    {
                        "topic": where.topic,
                        "partition": where.partition,
                        "source_topic": part.source.topic,
                        "copied_to": part.copied_to,
                        "source_end": part.source_end,
                        "lag": part.lag,
                        "bytes_copied": part.bytes_copied,
                        "records_skipped": part.records_skipped,
                        "error": part.error,
                        "seen_at_ms": part.seen_at_ms,
                    }
                    for where, part in sorted(self.partitions.items())
                ],
            }
        ).encode()

    @property
    def labels(self) -> str:
        """Return what tells a link from others, as Prometheus has it."""
        target = f',target="{_escaped(self.target_name)}"' if self.target_name else ""
        return f'source="{_escaped(self.source_name)}"{target}'


def metrics_of(links: Collection[Progress]) -> str:
    """Return the numbers of links as Prometheus reads them: each name once, with the values of all."""
    return "".join(_metric_lines(links))


def _metric_lines(links: Collection[Progress]) -> Iterator[str]:
    for name, kind, what, of_link in _LINK_METRICS:
        yield from _family(name, kind, what)
        for link in links:
            yield f"{name}{{{link.labels}}} {of_link(link)}\n"
    for name, kind, what, of_part in _PARTITION_METRICS:
        yield from _family(name, kind, what)
        for link in links:
            for where, part in sorted(link.partitions.items()):
                labels = f'{link.labels},topic="{where.topic}",partition="{where.partition}"'
                yield f"{name}{{{labels}}} {of_part(part)}\n"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _family(name: str, kind: str, what: str) -> Iterator[str]:
    yield f"# HELP {name} {what}\n# TYPE {name} {kind}\n"


_LINK_METRICS: Any = (
    (
        "ottla_mirror_bytes_per_second",
        "gauge",
        "Bytes copied per second.",
        lambda link: round(link.bytes_per_second),
    ),
    (
        "ottla_mirror_up",
        "gauge",
        "1 if the link works, 0 if it has an error.",
        lambda link: int(link.error is None and not link.topic_errors),
    ),
    ("ottla_mirror_errors_total", "counter", "Errors of the link since the start.", lambda link: link.errors),
)
_PARTITION_METRICS: Any = (
    (
        "ottla_mirror_lag",
        "gauge",
        "Offsets that the copy is behind; NaN if that is not known.",
        lambda part: "NaN" if part.lag is None else part.lag,
    ),
    (
        "ottla_mirror_lag_unknown",
        "gauge",
        "1 if it is not known how far the copy is behind.",
        lambda part: int(part.lag is None),
    ),
    (
        "ottla_mirror_copied_bytes_total",
        "counter",
        "Bytes copied since the start.",
        lambda part: part.bytes_copied,
    ),
    (
        "ottla_mirror_skipped_records_total",
        "counter",
        "Offsets that the source had removed before they were copied.",
        lambda part: part.records_skipped,
    ),
    (
        "ottla_mirror_failed",
        "gauge",
        "1 if the partition cannot be copied.",
        lambda part: int(part.error is not None),
    ),
)
