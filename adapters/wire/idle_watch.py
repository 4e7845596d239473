"""Measures the CPU time and the output of a target while the kit sends it no request."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from fencepost.adapters.address import Address
from fencepost.adapters.wire.process_control import ProcessControl

Windows = tuple[tuple[float, float], ...]
"""Pauses before each look at an idle target, and how long it takes, in seconds; each look follows if the one before was
striking."""
CALM_WINDOWS: Windows = ((0.5, 1.0), (0.0, 2.0))
BRIEF_WINDOWS: Windows = ((0.0, 0.3), (0.0, 1.0))
"""For a look while members wait, whose sessions would run out."""
MAX_NAMED_GROUPS = 3

NameGroups = Callable[[], Awaitable[Sequence[str]]]
"""Asks for the groups of the kit that rebalance at present."""


class IdleWatch:
    """Measures an idle target that the kit starts and kills. Any other target may serve other clients, and is not
    watched."""

    def __init__(self, process_control: ProcessControl | None) -> None:
        self._process_control = process_control
        self._was_seen = False
        self._was_missed = False
        self.findings: tuple[str, ...] = ()
        """What it used that was too much, and when."""

    @property
    def remarks(self) -> tuple[str, ...]:
        """What the report has to say of a target that could not be watched."""
        if self._was_seen or not self._was_missed:
            return ()
        return ("CPU time and output while idle were not watched: no process of this machine listens at the address",)

    async def look(
        self, when: str, addresses: Sequence[Address], name_groups: NameGroups, windows: Windows = CALM_WINDOWS
    ) -> None:
        """Look at the target, which listens at the addresses, and note it if it uses too much in every window. `when`
        is a phrase such as "after the scenarios"."""
        if self._process_control is None:
            return
        excess = ""
        groups: Sequence[str] = ()
        for pause, window in windows:
            await asyncio.sleep(pause)
            use = await self._process_control.measure_use(window, addresses)
            self._was_seen |= use is not None
            self._was_missed |= use is None
            excess = use.describe_excess() if use is not None else ""
            if not excess:
                return
            groups = groups or await name_groups()  # of the first time: a group may come to rest meanwhile
        self.findings = (*self.findings, f"the target {excess}, {when}{name_some(groups)}")


def name_some(groups: Sequence[str]) -> str:
    """The groups that rebalance in words, "" if there are none."""
    if not groups:
        return ""
    more = f" and {len(groups) - MAX_NAMED_GROUPS} more" if len(groups) > MAX_NAMED_GROUPS else ""
    return f"; rebalancing at that time: {', '.join(groups[:MAX_NAMED_GROUPS])}{more}"
