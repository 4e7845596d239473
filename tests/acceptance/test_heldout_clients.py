"""The held-out faults of clients: each changes something, contradicts a statement, and is taken out again."""

import pytest

from fencepost.conformance.classic.zoo.client_stand import ClientFault
from fencepost.model.classic.catalogue.client import CLIENT_CATALOGUE
from tests.acceptance.checks import faulty_clients
from tests.acceptance.heldout_clients import CLIENT_FAULTS
from tests.support.patch_checks import assert_put_in_and_taken_out


def test_there_are_twenty_of_three_sides() -> None:
    sides = [fault.subject for fault in CLIENT_FAULTS.values()]
    assert [sides.count(side) for side in faulty_clients.PARTS] == [12, 4, 4]


@pytest.mark.parametrize("fault", CLIENT_FAULTS.values(), ids=lambda fault: fault.id)
def test_a_fault_contradicts_a_statement_and_is_taken_out_again(fault: ClientFault) -> None:
    assert fault.sentence.endswith(".") and fault.source.startswith("member.md ")
    assert fault.breaks and set(fault.breaks) <= CLIENT_CATALOGUE.keys()
    assert_put_in_and_taken_out(fault)
