"""The bytes of subscriptions, assignments and user data: the vectors of member.md appendix C, and nonsense."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencepost.model.assignors.consumer_protocol import (
    ConsumerProtocolError,
    decode_assignment,
    decode_cooperative_user_data,
    decode_sticky_user_data,
    decode_subscription,
    encode_assignment,
    encode_cooperative_user_data,
    encode_sticky_user_data,
    encode_subscription,
)
from fencepost.model.assignors.group import Subscription
from fencepost.model.assignors.sticky_group import Claim, cooperative_claim, sticky_claim

OWNED = (("t", 0), ("t", 1))
FULL = Subscription(("t",), owned=OWNED, generation=5)
SUBSCRIPTION_3 = "0003 00000001 0001 74 ffffffff 00000001 0001 74 00000002 00000000 00000001 00000005 ffff"
SUBSCRIPTION_0 = "0000 00000001 0001 74 ffffffff"
ASSIGNMENT_3 = "0003 00000001 0001 74 00000002 00000000 00000001 ffffffff"
STICKY_DATA = "00000001 0001 74 00000002 00000000 00000001 00000005"


def test_vectors_of_subscriptions_and_assignments() -> None:
    """V-WIRE-1, -2, -3."""
    assert encode_subscription(FULL) == bytes.fromhex(SUBSCRIPTION_3)
    assert decode_subscription(bytes.fromhex(SUBSCRIPTION_3)) == FULL
    assert encode_subscription(FULL, version=0) == bytes.fromhex(SUBSCRIPTION_0)
    assert decode_subscription(bytes.fromhex(SUBSCRIPTION_0)) == Subscription(("t",))
    assert encode_assignment(OWNED) == bytes.fromhex(ASSIGNMENT_3)
    assert decode_assignment(bytes.fromhex(ASSIGNMENT_3)) == OWNED


def test_vectors_of_user_data() -> None:
    """V-WIRE-4, -5, and the older layout of `sticky` (STICKY-11)."""
    assert encode_sticky_user_data(OWNED, 5) == bytes.fromhex(STICKY_DATA)
    assert encode_sticky_user_data(OWNED, None) == bytes.fromhex(STICKY_DATA)[:-4]
    assert decode_sticky_user_data(bytes.fromhex(STICKY_DATA)) == (OWNED, 5)
    assert decode_sticky_user_data(bytes.fromhex(STICKY_DATA)[:-4]) == (OWNED, -1)
    assert decode_sticky_user_data(None) is None
    assert encode_cooperative_user_data() == bytes.fromhex("ffffffff")
    assert encode_cooperative_user_data(5) == bytes.fromhex("00000005")
    assert decode_cooperative_user_data(bytes.fromhex("00000005")) == 5
    assert decode_cooperative_user_data(None) == decode_cooperative_user_data(b"\0") == -1


@pytest.mark.parametrize(("version", "lost"), [(0, "owned"), (1, "generation"), (2, "rack"), (3, "")])
def test_every_version_tells_what_it_has(version: int, lost: str) -> None:
    """ASSIGN-08."""
    whole = Subscription(("t", "u"), b"data", OWNED, 5, "rack-a")
    found = decode_subscription(encode_subscription(whole, version))
    names = ("owned", "generation", "rack")
    kept = names[: names.index(lost)] if lost else names
    plain = Subscription(("t", "u"), b"data")
    assert [getattr(found, name) for name in names] == [
        getattr(whole if name in kept else plain, name) for name in names
    ]


def test_a_newer_version_is_read_by_its_known_prefix() -> None:
    """WIRE-02."""
    newer = (9).to_bytes(2) + bytes.fromhex(SUBSCRIPTION_3)[2:] + b"more"
    assert decode_subscription(newer) == FULL
    assert decode_assignment((9).to_bytes(2) + bytes.fromhex(ASSIGNMENT_3)[2:] + b"more") == OWNED


def test_equal_claims_have_equal_bytes() -> None:
    """WIRE-04, KAFKA-12898."""
    reversed_claim = Subscription(("u", "t"), owned=(("u", 0), *reversed(OWNED)), generation=5)
    claim = Subscription(("t", "u"), owned=(*OWNED, ("u", 0)), generation=5)
    assert encode_subscription(reversed_claim) == encode_subscription(claim)
    assert encode_sticky_user_data(reversed(OWNED), 5) == encode_sticky_user_data(OWNED, 5)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("", "ConsumerProtocolSubscription: the version is missing, expected 0 or more"),
        ("ffff 00000000", "ConsumerProtocolSubscription: the version is -1, expected 0 or more"),
        ("0001 00000001 0001", "ConsumerProtocolSubscription version 1: truncated at topics[0]: need 1 bytes, have 0"),
        ("0000 ffffffff ffffffff", "ConsumerProtocolSubscription version 0: null in non-nullable topics"),
    ],
)
def test_what_is_no_subscription_is_an_error_in_a_line(data: str, message: str) -> None:
    with pytest.raises(ConsumerProtocolError) as error:
        decode_subscription(bytes.fromhex(data))
    assert str(error.value) == message


def test_no_bytes_assign_nothing() -> None:
    assert decode_assignment(b"") == ()
    with pytest.raises(ConsumerProtocolError, match="ConsumerProtocolAssignment: the version is -1"):
        decode_assignment(b"\xff\xff")


@given(st.binary(max_size=40))
def test_nonsense_in_user_data_claims_something_or_nothing_but_never_fails(data: bytes) -> None:
    """ASSIGN-07."""
    assert isinstance(sticky_claim(Subscription((), data)), Claim)
    assert cooperative_claim(Subscription((), data, OWNED)).partitions == OWNED


@given(st.lists(st.tuples(st.sampled_from(("t", "u")), st.integers(0, 9)), unique=True).map(sorted), st.integers(-1, 9))
def test_user_data_survive_a_round_trip(owned: list[tuple[str, int]], generation: int) -> None:
    assert decode_sticky_user_data(encode_sticky_user_data(owned, generation)) == (tuple(owned), generation)
    assert decode_assignment(encode_assignment(owned)) == tuple(owned)
