"""What the check of a cluster says of requests that were refused."""

from tests.support.made_up_evidence import event, journal

from ottla.explain.doctor import _network


def test_refused_requests_are_counted_and_typos_in_commands_are_left_out() -> None:
    typo = event(
        1,
        "request-refused",
        "client/ottla@127.0.0.1",
        api="metadata",
        error="UNKNOWN_TOPIC_OR_PARTITION",
        count=3,
    )
    (fine,) = _network(journal(typo))
    assert fine.is_fine
    denied = event(
        1, "request-refused", "client/ottla@h", api="fetch", error="TOPIC_AUTHORIZATION_FAILED", count=1
    )
    (told,) = _network(journal(denied))
    assert not told.is_fine, "an application may have the default client id, too"
    refused = [
        event(2, "request-refused", "client/till@h", api="produce", error="MESSAGE_TOO_LARGE", count=count)
        for count in (4, 5)
    ]
    other = event(
        3, "request-refused", "client/x@h", api="fetch", error="TOPIC_AUTHORIZATION_FAILED", count=1
    )
    (sick,) = _network(journal(typo, *refused, other))
    assert not sick.is_fine
    assert (
        "10 requests were refused in the last 5 minutes, 2.0 a minute; 9 of them produce of till@h"
        in sick.text
    )
    assert sick.next_step == "ottla journal --kind request-refused --since 5m"
