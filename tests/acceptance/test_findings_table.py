"""The table of findings in real clients: it is that of the registry, and everything in it has a place."""

import pytest

from tests.acceptance.client_findings import SOURCE_OF_FAILURES
from tests.acceptance.findings_table import TABLE, failures_in, make_table, newest_report


def test_the_table_is_that_of_the_registry() -> None:
    assert TABLE.read_text() == make_table(), "run python -m tests.acceptance.findings_table"


@pytest.mark.parametrize("client", SOURCE_OF_FAILURES)
def test_what_the_registry_says_is_broken_has_a_place_in_the_source(client: str) -> None:
    assert failures_in(newest_report(client)[1]).keys() <= SOURCE_OF_FAILURES[client].keys()
