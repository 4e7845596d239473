"""Every scenario with the reference client, which keeps all requirements, on virtual time."""

import pytest

from fencepost.conformance.clients.classic import SCENARIOS
from fencepost.model.classic.member.settings import ClientSettings
from fencepost.traces.verdict import PASSING, CheckStatus
from tests.support.client_scenarios import COOPERATIVE, EAGER, play_scenario
from tests.support.faulty_clients import WITNESSED

NAMES = [scenario.name for scenario in SCENARIOS]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("settings", [EAGER, COOPERATIVE], ids=["eager", "cooperative"])
async def test_the_reference_client_keeps_all_requirements(name: str, settings: ClientSettings) -> None:
    run = await play_scenario(name, settings)
    assert (run.verdict.violations, run.blocked, run.not_shown) == ((), "", "")
    assert [check for check in run.verdict.check_results if check.status not in PASSING] == []
    assert [check for check in run.verdict.check_results if check.status is CheckStatus.UNUSUAL] == []
    assert {check.requirement for check in run.verdict.check_results} <= WITNESSED
