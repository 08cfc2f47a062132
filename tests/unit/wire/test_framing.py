"""Frames and headers."""

import pytest

from ottla.wire.apis import Api, ApiKey, api_of
from ottla.wire.codec import encode
from ottla.wire.errors import MalformedBytes, Unencodable
from ottla.wire.framing import (
    FRAME_BYTES_MAX,
    FrameBuffer,
    UnsupportedRequest,
    decode_request,
    decode_request_head,
    decode_response,
    encode_request,
    encode_response,
    encode_response_pieces,
    frame_end,
    peek_api_key,
)
from ottla.wire.headers import RequestHeader, ResponseHeader
from ottla.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ottla.wire.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from ottla.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse

HEARTBEAT = api_of(ApiKey.HEARTBEAT)
API_VERSIONS = api_of(ApiKey.API_VERSIONS)
REQUEST = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")


def with_size(payload: bytes) -> bytes:
    return len(payload).to_bytes(4) + payload


@pytest.mark.parametrize(("version", "header_version"), [(3, 1), (4, 2)])
@pytest.mark.parametrize("client_id", [None, "", "café"])
def test_request_is_size_header_and_body(version: int, header_version: int, client_id: str | None) -> None:
    frame = encode_request(REQUEST, HEARTBEAT, version, 77, client_id)
    header = RequestHeader(
        request_api_key=12, request_api_version=version, correlation_id=77, client_id=client_id
    )
    assert frame == with_size(encode(header, header_version) + encode(REQUEST, version))
    head, request = decode_request(frame[4:])
    assert head[:4] == (HEARTBEAT, version, 77, client_id)
    assert request == REQUEST


@pytest.mark.parametrize(("version", "header_version"), [(3, 0), (4, 1)])
def test_response_is_size_header_and_body(version: int, header_version: int) -> None:
    response = HeartbeatResponse(throttle_time_ms=5)
    frame = encode_response(response, HEARTBEAT, version, 77)
    header = encode(ResponseHeader(correlation_id=77), header_version)
    assert frame == with_size(header + encode(response, version))
    assert decode_response(HEARTBEAT, version, frame[4:]) == (77, response)


@pytest.mark.parametrize("version", range(5))
def test_api_versions_is_always_answered_with_header_0(version: int) -> None:
    # The client cannot know yet whether we understand the newer header.
    response = ApiVersionsResponse(api_keys=())
    frame = encode_response(response, API_VERSIONS, version, 1)
    assert frame == with_size(b"\x00\x00\x00\x01" + encode(response, version))
    assert decode_response(API_VERSIONS, version, frame[4:]) == (1, response)


def test_api_versions_request_has_the_newer_header_from_version_3() -> None:
    request = ApiVersionsRequest(client_software_name="a", client_software_version="b")
    assert encode_request(request, API_VERSIONS, 3, 1, None)[4:].hex() == (
        "0012" + "0003" + "00000001" + "ffff" + "00" + "0261" + "0262" + "00"
    )


def test_surplus_bytes_after_a_request_are_ignored_but_not_after_a_response() -> None:
    frame = encode_request(REQUEST, HEARTBEAT, 4, 1, None)[4:] + b"abc"
    assert decode_request(frame)[1] == REQUEST
    answer = encode_response(HeartbeatResponse(), HEARTBEAT, 4, 1)[4:] + b"abc"
    with pytest.raises(MalformedBytes, match="HEARTBEAT v4: 3 bytes are left over"):
        decode_response(HEARTBEAT, 4, answer)


@pytest.mark.parametrize(
    ("api_key", "version"), [(12, 5), (12, -1), (999, 0), (-1, 0), (4, 0), (4, -1), (18, 99)]
)
def test_what_does_not_exist_is_named_with_its_correlation_id(api_key: int, version: int) -> None:
    frame = (
        api_key.to_bytes(2, signed=True) + version.to_bytes(2, signed=True) + bytes.fromhex("0000002affff")
    )
    with pytest.raises(UnsupportedRequest) as raised:
        decode_request(frame)
    assert (raised.value.api_key, raised.value.version, raised.value.correlation_id) == (api_key, version, 42)
    assert peek_api_key(frame) == (api_key, version)


def test_tagged_fields_of_headers_are_skipped() -> None:
    plain = encode_request(REQUEST, HEARTBEAT, 4, 1, "c")[4:]
    tagged = plain[:11] + bytes.fromhex("02" + "0001aa" + "0500") + plain[12:]
    assert decode_request(tagged)[1] == REQUEST
    answer = bytes.fromhex("00000001" + "01" + "0702aabb") + encode(HeartbeatResponse(), 4)
    assert decode_response(HEARTBEAT, 4, answer) == (1, HeartbeatResponse())


@pytest.mark.parametrize("tags", ["", "41", "01", "0100", "0100ffffffff07", "0105", "020100" + "0100", "ff"])
def test_spoilt_tagged_fields_of_headers_are_refused(tags: str) -> None:
    with pytest.raises(MalformedBytes):
        decode_request_head(memoryview(bytes.fromhex("000c" + "0004" + "00000001" + "ffff" + tags)))
    with pytest.raises(MalformedBytes):
        decode_response(HEARTBEAT, 4, bytes.fromhex("00000001" + tags))


@pytest.mark.parametrize(
    "header", ["", "000c", "000c000400000001", "000c0004000000010005" + "6162", "000c00040000000100" + "01ff"]
)
def test_spoilt_headers_are_refused(header: str) -> None:
    with pytest.raises(MalformedBytes):
        decode_request_head(memoryview(bytes.fromhex(header)))


def test_a_client_id_that_is_too_long_is_refused() -> None:
    with pytest.raises(Unencodable, match="client id takes 40000 bytes"):
        encode_request(REQUEST, HEARTBEAT, 4, 1, "x" * 40_000)


def test_too_short_to_peek_into() -> None:
    with pytest.raises(MalformedBytes, match="request header"):
        peek_api_key(b"\x00\x01\x00")


def test_records_stay_a_piece_of_their_own() -> None:
    records = memoryview(b"some batches")
    partition = PartitionData(partition_index=0, high_watermark=1, aborted_transactions=None, records=records)
    response = FetchResponse(responses=(FetchableTopicResponse(topic="t", partitions=(partition,)),))
    fetch = api_of(ApiKey.FETCH)
    pieces = encode_response_pieces(response, fetch, 12, 9)
    assert any(piece is records for piece in pieces)
    assert b"".join(pieces) == encode_response(response, fetch, 12, 9)


class TestFrameBuffer:
    def test_frames_come_out_whole(self) -> None:
        buffer = FrameBuffer()
        assert buffer.feed(with_size(b"one") + with_size(b"") + with_size(b"three")[:5]) == [b"one", b""]
        assert buffer.pending_bytes == 5
        assert buffer.feed(b"hree") == [b"three"]
        assert buffer.pending_bytes == 0

    def test_an_announced_size_costs_nothing_until_the_bytes_come(self) -> None:
        buffer = FrameBuffer()
        assert buffer.feed(FRAME_BYTES_MAX.to_bytes(4)) == []
        assert buffer.pending_bytes == 4

    @pytest.mark.parametrize("size", [-1, -(1 << 31), 101, (1 << 31) - 1])
    def test_a_size_that_is_not_allowed_is_refused(self, size: int) -> None:
        with pytest.raises(MalformedBytes, match=f"a frame announces {size} bytes, but 0 to 100 are allowed"):
            FrameBuffer(frame_bytes_max=100).feed(size.to_bytes(4, signed=True))

    def test_frame_end_waits_for_the_whole_size(self) -> None:
        assert frame_end(b"\x00\x00\x00", 0) is None
        assert frame_end(b"xx\x00\x00\x00\x05", 2) == 11


def test_apis_know_their_versions_and_headers() -> None:
    init_producer_id = api_of(ApiKey.INIT_PRODUCER_ID)
    assert str(init_producer_id.versions) == "0-6"
    assert str(init_producer_id.stable_versions) == "0-5"
    assert [init_producer_id.request_header_version(version) for version in range(4)] == [1, 1, 2, 2]
    assert [init_producer_id.response_header_version(version) for version in range(4)] == [0, 0, 1, 1]
    assert API_VERSIONS.stable_versions == API_VERSIONS.versions
    assert isinstance(api_of(12), Api)


@pytest.mark.parametrize("key", [-1, 93, 1000])
def test_keys_that_no_api_has_are_refused(key: int) -> None:
    with pytest.raises(ValueError, match="is not a valid ApiKey"):
        api_of(key)
