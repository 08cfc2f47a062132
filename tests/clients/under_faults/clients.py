"""Three clients that can be told to do the same: Ottla's, librdkafka's by confluent-kafka, and Java's."""

import subprocess
import threading
import time
from abc import ABC, abstractmethod
from typing import Any, ClassVar, NamedTuple

import confluent_kafka
from tests.java.jars import compiled, java_command

from ottla import sync
from ottla.client.errors import ClientError
from ottla.client.sync.producer import Delivery


class Sending(NamedTuple):
    """What became of a call of `send`."""

    waited_s: float
    error: str


class Client(ABC):
    """A producer and a consumer of one kind. Calls return an error as text, or an empty one."""

    name: str
    own_settings: ClassVar[dict[str, str]]
    """What this client calls otherwise: its own names of Kafka's settings, empty for none."""

    def settings(self, given: dict[str, str]) -> dict[str, str]:
        """Return settings in this client's words."""
        named = {self.own_settings.get(name, name): value for name, value in given.items()}
        return {name: value for name, value in named.items() if name}

    @abstractmethod
    def open_producer(self, settings: dict[str, str]) -> str: ...

    @abstractmethod
    def send(self, topic: str, value: str, partition: int | None = None) -> Sending: ...

    @abstractmethod
    def flush(self, timeout_s: float) -> bool:
        """Say whether everything is acknowledged or has failed."""

    @abstractmethod
    def outcomes(self) -> dict[str, str]:
        """Return, of each value, `partition:offset`, `!error` or `?`."""

    @abstractmethod
    def transact(self, call: str) -> str:
        """Make one of the calls init, begin, commit, abort."""

    @abstractmethod
    def close_producer(self) -> str: ...

    @abstractmethod
    def open_consumer(self, topic: str, settings: dict[str, str]) -> str: ...

    @abstractmethod
    def poll(self, timeout_s: float) -> tuple[list[str], str]: ...

    @abstractmethod
    def poll_twice(self) -> list[str]:
        """Poll in two threads at once, and return what each has got."""

    @abstractmethod
    def close_consumer(self) -> str: ...

    def end(self) -> None:  # noqa: B027 - most have nothing to end
        """End what runs for it."""


class Ours(Client):
    """Ottla's own client."""

    name = "Ottla's client"
    own_settings: ClassVar[dict[str, str]] = {"topic.metadata.refresh.interval.ms": ""}

    def open_producer(self, settings: dict[str, str]) -> str:
        self._sent: dict[str, Delivery] = {}
        self._producer = sync.Producer(properties=self.settings(settings))
        return ""

    def send(self, topic: str, value: str, partition: int | None = None) -> Sending:
        begin_s = time.monotonic()
        try:
            delivery = self._producer.send(topic, value.encode(), partition=partition)
            self._sent[value] = delivery
        except ClientError as error:
            return Sending(time.monotonic() - begin_s, str(error))
        # This client keeps some thousands of records before `send` waits: what counts is when it is taken in.
        while delivery._sent is None and delivery._error is None:
            time.sleep(0.001)
        error_text = "" if delivery._error is None else str(delivery._error)
        if error_text:
            del self._sent[value]
        return Sending(time.monotonic() - begin_s, error_text)

    def flush(self, timeout_s: float) -> bool:
        deadline_s = time.monotonic() + timeout_s
        while time.monotonic() < deadline_s:
            if all(delivery.is_done for delivery in self._sent.values()):
                return True
            time.sleep(0.01)
        return False

    def outcomes(self) -> dict[str, str]:
        return {value: _outcome(delivery) for value, delivery in self._sent.items()}

    def transact(self, call: str) -> str:
        calls: dict[str, Any] = {
            "init": lambda: None,
            "begin": self._producer.begin_transaction,
            "commit": self._producer.commit_transaction,
            "abort": self._producer.abort_transaction,
        }
        return _error_of(calls[call])

    def close_producer(self) -> str:
        return _error_of(self._producer.close)

    def open_consumer(self, topic: str, settings: dict[str, str]) -> str:
        self._consumer = sync.Consumer(properties=self.settings(settings))
        return _error_of(lambda: self._consumer.subscribe([topic]))

    def poll(self, timeout_s: float) -> tuple[list[str], str]:
        try:
            found = self._consumer.poll(int(timeout_s * 1000))
        except ClientError as error:
            return [], str(error)
        return [(record.value or b"").decode() for record in found], ""

    def poll_twice(self) -> list[str]:
        def poll() -> str:
            found, error = self.poll(3)
            return error or f"{len(found)} records"

        return _at_once(poll)

    def close_consumer(self) -> str:
        return _error_of(self._consumer.close)


class Librdkafka(Client):
    """librdkafka by confluent-kafka."""

    name = f"librdkafka {confluent_kafka.libversion()[0]}"
    own_settings: ClassVar[dict[str, str]] = {
        "metadata.max.age.ms": "topic.metadata.refresh.interval.ms",
        "max.block.ms": "",
        "buffer.memory": "",
    }

    def open_producer(self, settings: dict[str, str]) -> str:
        self._outcomes: dict[str, str] = {}
        own: Any = self.settings(settings)
        self._producer: confluent_kafka.Producer | None = None
        if "buffer.memory" in settings:
            own |= {"queue.buffering.max.kbytes": str(int(settings["buffer.memory"]) // 1024)}
        self._producer = confluent_kafka.Producer({"log_level": "0", **own})
        return ""

    def send(self, topic: str, value: str, partition: int | None = None) -> Sending:
        def delivered(error: Any, message: Any) -> None:
            self._outcomes[value] = f"!{error}" if error else f"{message.partition()}:{message.offset()}"

        assert self._producer is not None, "it was opened"
        begin_s = time.monotonic()
        where: Any = {} if partition is None else {"partition": partition}
        self._outcomes[value] = "?"
        try:
            self._producer.produce(topic, value.encode(), on_delivery=delivered, **where)
        except (BufferError, confluent_kafka.KafkaException) as error:
            del self._outcomes[value]
            return Sending(time.monotonic() - begin_s, f"{type(error).__name__}: {error}")
        self._producer.poll(0)
        return Sending(time.monotonic() - begin_s, "")

    def flush(self, timeout_s: float) -> bool:
        assert self._producer is not None, "it was opened"
        return not self._producer.flush(timeout_s)

    def outcomes(self) -> dict[str, str]:
        if self._producer is not None:
            self._producer.poll(0)
        return dict(self._outcomes)

    def transact(self, call: str) -> str:
        producer = self._producer
        assert producer is not None, "it was opened"
        calls: dict[str, Any] = {
            "init": lambda: producer.init_transactions(30),
            "begin": producer.begin_transaction,
            "commit": lambda: producer.commit_transaction(30),
            "abort": lambda: producer.abort_transaction(30),
        }
        return _error_of(calls[call])

    def close_producer(self) -> str:
        # There is no call that closes it: the object is let go.
        self.flush(30)
        self._producer = None
        return ""

    def open_consumer(self, topic: str, settings: dict[str, str]) -> str:
        self._consumer = confluent_kafka.Consumer({"log_level": "0", **self.settings(settings)})
        self._consumer.subscribe([topic])
        return ""

    def poll(self, timeout_s: float) -> tuple[list[str], str]:
        found, errors = [], []
        for message in self._consumer.consume(500, timeout_s):
            if message.error() is not None:
                errors.append(str(message.error()))
            else:
                found.append((message.value() or b"").decode())
        return found, "; ".join(errors)

    def poll_twice(self) -> list[str]:
        def poll() -> str:
            message = self._consumer.poll(3)
            return "0 records" if message is None else str(message.error() or "1 records")

        return _at_once(poll)

    def close_consumer(self) -> str:
        return _error_of(self._consumer.close)


class Java(Client):
    """Apache Kafka's own client."""

    name = "Java client 4.3.1"
    own_settings: ClassVar[dict[str, str]] = {"topic.metadata.refresh.interval.ms": ""}

    def __init__(self) -> None:
        command = java_command(compiled("UnderFaults.java"), "UnderFaults")
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )

    def _tell(self, *words: object) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("\t".join(map(str, words)) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, f"the JVM ended at {words[0]}"
        return line.rstrip("\n")

    def _settings_as_words(self, settings: dict[str, str]) -> list[str]:
        return [f"{name}={value}" for name, value in self.settings(settings).items()]

    def open_producer(self, settings: dict[str, str]) -> str:
        return self._tell("producer", *self._settings_as_words(settings)).removeprefix("!")

    def send(self, topic: str, value: str, partition: int | None = None) -> Sending:
        told = self._tell("send", topic, "" if partition is None else partition, value)
        waited_ms, error = told.split("\t")
        return Sending(int(waited_ms) / 1000, error)

    def flush(self, timeout_s: float) -> bool:
        return self._tell("flush", int(timeout_s * 1000)) == "0"

    def outcomes(self) -> dict[str, str]:
        told = self._tell("outcomes")
        pairs = (pair.partition("=") for pair in told.split("\t") if pair)
        return {value: outcome for value, _, outcome in pairs}

    def transact(self, call: str) -> str:
        return self._tell(call).removeprefix("!")

    def close_producer(self) -> str:
        return self._tell("close producer").removeprefix("!")

    def open_consumer(self, topic: str, settings: dict[str, str]) -> str:
        return self._tell("consumer", topic, *self._settings_as_words(settings)).removeprefix("!")

    def poll(self, timeout_s: float) -> tuple[list[str], str]:
        told = self._tell("poll", int(timeout_s * 1000))
        return ([], told[1:]) if told.startswith("!") else (told.split("\t") if told else [], "")

    def poll_twice(self) -> list[str]:
        return self._tell("poll twice").split("\t")

    def close_consumer(self) -> str:
        return self._tell("close consumer").removeprefix("!")

    def end(self) -> None:
        """End the JVM."""
        self._process.communicate()


def _outcome(delivery: Delivery) -> str:
    if not delivery.is_done:
        return "?"
    try:
        found = delivery.result()
    except ClientError as error:
        return f"!{error}"
    return f"{found.partition}:{found.offset}"


def _error_of(call: Any) -> str:
    try:
        call()
    except (ClientError, confluent_kafka.KafkaException, RuntimeError) as error:
        return str(error)
    return ""


def _at_once(poll: Any) -> list[str]:
    found = ["", ""]

    def work(number: int) -> None:
        found[number] = poll()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found
