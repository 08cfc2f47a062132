"""Records are shown newest first over all partitions, whole, and as what they are."""

import re

from tests.console.test_pages import text_of
from tests.support.console_visitor import ConsoleVisitor

LINK = re.compile(r'href="/c/c/topics/shop\.orders/records/(\d+)/(\d+)"><time datetime="([^"]+)"')


def test_records_of_all_partitions_come_by_time_and_pages_meet(visitor: ConsoleVisitor) -> None:
    seen: list[tuple[str, str, str]] = []
    path = "/topics/shop.orders/records"
    while path:
        page = visitor.page(path)
        rows = LINK.findall(page)
        seen += rows
        older = re.search(r'rel="next" href="(\?[^"]+)"', page)
        path = "/topics/shop.orders/records" + older[1].replace("&amp;", "&") if older else ""
    assert len(seen) == len(set(seen)) == 300
    times = [time for _, _, time in seen]
    assert times == sorted(times, reverse=True)


def test_records_are_found_by_time_and_by_offset(visitor: ConsoleVisitor) -> None:
    times = [time for *_, time in LINK.findall(visitor.page("/topics/shop.orders/records"))]
    page = visitor.page(f"/topics/shop.orders/records?at={times[10]}")
    assert next(time for *_, time in LINK.findall(page)) == times[10]
    rows = LINK.findall(visitor.page("/topics/shop.orders/records?partition=1&offset=7"))
    assert [int(offset) for _, offset, _ in rows] == list(range(7, -1, -1))


def test_what_is_no_place_is_a_sentence(visitor: ConsoleVisitor) -> None:
    for query in ("at=yesterday", "before=x", "before=zAAAA", "offset=3", "partition=x"):
        answer = visitor.get(f"/topics/shop.orders/records?{query}")
        assert answer.status_code == 400, query


def test_numbers_of_64_bits_are_exact(visitor: ConsoleVisitor) -> None:
    page = text_of(visitor.page("/topics/shop.orders/records"))
    assert "9007199254740993" in visitor.page("/topics/hostile/records/0/6")
    assert "1.10" in visitor.page("/topics/hostile/records/0/6")
    assert re.search(r"90071992547412\d\d", page)


def test_a_large_value_is_cut_and_can_be_had_whole(visitor: ConsoleVisitor) -> None:
    page = visitor.page("/topics/shop.refunds/records/0/0")
    assert "This is the beginning" in page
    assert len(page) < 100_000
    whole = visitor.get("/topics/shop.refunds/records/0/0/value")
    assert whole.content == b"x" * 200_000
    assert whole.headers["content-type"] == "application/octet-stream"
    assert whole.headers["content-disposition"].startswith("attachment")


def test_a_tombstone_says_what_it_does(visitor: ConsoleVisitor) -> None:
    assert "tombstone" in visitor.page("/topics/shop.customers/records/0/0")


def test_a_record_that_is_not_there_is_a_sentence(visitor: ConsoleVisitor) -> None:
    for place in ("0/999999", "99/0", "0/x", "x/0"):
        assert visitor.get(f"/topics/shop.orders/records/{place}").status_code == 404, place


def test_bytes_are_shown_raw_and_in_hex(visitor: ConsoleVisitor) -> None:
    page = visitor.page("/topics/hostile/records/0/4?as=hex")
    assert "ff fe 00 20 6e 6f 74 20" in page
    assert "\\xff\\xfe" in visitor.page("/topics/hostile/records/0/4?as=raw")
    assert visitor.get("/topics/hostile/records/0/4?as=html").status_code == 400


def test_a_value_that_names_a_schema_says_why_it_is_not_decoded(visitor: ConsoleVisitor) -> None:
    from ottla.console.looks.decoding import Decoding

    async def decode(url: str | None) -> str | None:
        decoding = Decoding(url)
        (found,) = await decoding.decode_all([(b"\x00\x00\x00\x00\x2a...", (), False)])
        assert found.schema_id == 42
        decoding.close()
        return found.reason

    assert "start the console with --registry" in str(visitor.run(decode(None)))
    assert "could not be asked for" in str(visitor.run(decode("http://127.0.0.1:1")))
