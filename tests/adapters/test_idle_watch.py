"""The watch of an idle target: its findings, when it asks for groups, and when it looks again."""

from collections.abc import Sequence

import pytest

from fencepost.adapters.address import Address
from fencepost.adapters.wire.process_control import BRIEF_WINDOWS, CALM_WINDOWS, IdleUse, IdleWatch, ProcessControl

ADDRESSES = (("127.0.0.1", 9092),)


class ScriptedControl(ProcessControl):
    """A target that uses shares of a core, one at each look; None is a look that finds no process."""

    def __init__(self, *shares: float | None) -> None:
        super().__init__(("start",))
        self.shares = list(shares)
        self.windows: list[float] = []

    async def measure_use(self, seconds: float, addresses: Sequence[Address] = ()) -> IdleUse | None:
        assert tuple(addresses) == ADDRESSES
        self.windows.append(seconds)
        share = self.shares.pop(0)
        return None if share is None else IdleUse(seconds, share * seconds, 0.0, 0)


async def watch(control: ScriptedControl | None, groups: Sequence[str] = (), *, brief: bool = False) -> IdleWatch:
    """A watch that has looked once, after the scenarios."""

    async def name_groups() -> Sequence[str]:
        return groups

    idle_watch = IdleWatch(control)
    windows = BRIEF_WINDOWS if brief else CALM_WINDOWS
    await idle_watch.look("after the scenarios", ADDRESSES, name_groups, windows)
    return idle_watch


async def test_a_finding_says_how_much_and_after_what() -> None:
    idle_watch = await watch(ScriptedControl(0.9, 0.75))
    assert idle_watch.findings == (
        "the target used 1.5 s of CPU (0.75 s a second) in 2.0 s without a request, after the scenarios",
    )


@pytest.mark.parametrize(
    ("groups", "ending"),
    [
        (["g"], "after the scenarios; rebalancing at that time: g"),
        (list("abcde"), "after the scenarios; rebalancing at that time: a, b, c and 2 more"),
    ],
)
async def test_the_groups_that_rebalance_are_named(groups: list[str], ending: str) -> None:
    (finding,) = (await watch(ScriptedControl(1.0, 1.0), groups)).findings
    assert finding.endswith(ending)


@pytest.mark.parametrize(
    ("brief", "shares", "windows"), [(False, [0.9, 0.1], [1.0, 2.0]), (False, [0.1], [1.0]), (True, [0.1], [0.3])]
)
async def test_one_striking_look_is_no_finding(brief: bool, shares: list[float], windows: list[float]) -> None:
    control = ScriptedControl(*shares)
    idle_watch = await watch(control, brief=brief)
    assert idle_watch.findings == idle_watch.remarks == ()
    assert control.windows == windows


async def test_a_target_that_could_never_be_watched_is_told() -> None:
    idle_watch = await watch(ScriptedControl(None))
    assert idle_watch.findings == ()
    assert len(idle_watch.remarks) == 1 and "not watched" in idle_watch.remarks[0]


async def test_a_target_of_somebody_else_is_not_watched() -> None:
    idle_watch = await watch(None)
    assert idle_watch.findings == idle_watch.remarks == ()
