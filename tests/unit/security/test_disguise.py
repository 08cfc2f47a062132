"""Nobody can tell by a challenge whether a user exists, also not by the challenges of several nodes."""

import hashlib
import random
from collections import Counter

from ottla.client.admin.credentials import DEFAULT_ITERATIONS as ITERATIONS_OF_OURS
from ottla.security.delegation_tokens import TokenKeys
from ottla.security.sasl.disguise import DEFAULT_ITERATIONS, MODELS_MAX, choose_models, disguise
from ottla.security.sasl.scram import ScramCredential

NAMES = [f"nobody-{number}" for number in range(1_000)]


def credential(user: str, *, salt_bytes: int = 32, iterations: int = 8192) -> ScramCredential:
    secret = hashlib.sha512(user.encode()).digest()
    return ScramCredential(secret[:salt_bytes], secret, secret[::-1], iterations)


def users(count: int) -> list[tuple[str, ScramCredential]]:
    return [(f"user-{number}", credential(f"user-{number}")) for number in range(count)]


def test_each_node_says_the_same_of_a_name() -> None:
    """Nodes have learnt of the users in another order, and have other secrets of their own."""
    mixed = users(200)
    random.Random(1).shuffle(mixed)
    first, second = choose_models(users(200)), choose_models(mixed)
    assert len(first) == MODELS_MAX
    for name in NAMES[:20]:
        assert disguise(name, first, b"one") == disguise(name, second, b"another")


def test_names_have_salts_of_their_own() -> None:
    models = choose_models(users(3))
    assert len({disguise(name, models, b"").salt for name in NAMES}) == len(NAMES)


def test_without_the_secrets_of_users_nobody_can_make_the_salts() -> None:
    known = choose_models(users(1))
    guessed = [one._replace(server_key=b"", stored_key=b"") for one in known]
    assert disguise("nobody", known, b"").salt != disguise("nobody", guessed, b"").salt


def test_a_user_that_knows_its_own_keys_cannot_make_the_salts() -> None:
    models = choose_models(users(2))
    own = [(one,) for one in models]
    for name in NAMES[:20]:
        made = disguise(name, models, b"").salt
        assert made not in [disguise(name, known, b"").salt for known in own]


def test_iterations_and_salts_are_as_frequent_as_among_users() -> None:
    of_kafka = [
        (f"k{number}", credential(f"k{number}", salt_bytes=26, iterations=4096)) for number in (1, 2, 3)
    ]
    models = choose_models([*of_kafka, ("ours", credential("ours"))])
    seen = Counter((len(made.salt), made.iterations) for made in (disguise(n, models, b"") for n in NAMES))
    assert set(seen) == {(26, 4096), (32, 8192)}
    assert 650 < seen[26, 4096] < 850


def test_a_new_user_changes_few_of_the_others() -> None:
    before, after = choose_models(users(20)), choose_models(users(21))
    changed = sum(disguise(name, before, b"") != disguise(name, after, b"") for name in NAMES)
    assert 0 < changed < 200


def test_a_user_made_by_our_own_command_is_like_nobody_at_all() -> None:
    assert disguise("nobody", (), b"key").iterations == DEFAULT_ITERATIONS == ITERATIONS_OF_OURS


def test_a_token_that_does_not_exist_looks_like_one_that_does() -> None:
    keys = TokenKeys("key")
    real = keys.credential("a-token", "SCRAM-SHA-512")
    made = keys.disguise("a-token")
    assert (made.salt, made.iterations) == (real.salt, real.iterations)
    assert made.stored_key != real.stored_key
