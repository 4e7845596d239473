"""No scenario takes an expiry for evidence of something else: only a check that is about a session sees one end."""

from collections.abc import Callable
from dataclasses import replace

from fencepost.adapters.classic.group import Group, Member
from fencepost.adapters.classic.rebalance import Rebalancer
from fencepost.adapters.in_process import InProcessTarget
from fencepost.adapters.virtual_clock import run_virtual
from fencepost.conformance.classic.scenarios import ALL
from fencepost.conformance.run.bundled import BUNDLED_SETTINGS
from fencepost.conformance.run.play import NewTarget
from fencepost.conformance.subject import Scenario, required_capabilities
from fencepost.conformance.zoo.fault import Patch
from fencepost.traces.events import Body, Event, Header, Kind
from fencepost.traces.verdict import TraceVerdict

SETTINGS = replace(BUNDLED_SETTINGS, initial_rebalance_delay=0)
LONG_MS = 30_000
"""Members that need no heartbeats have at least this session timeout."""
PLAYED = [each for each in ALL if "initial-delay" not in required_capabilities(each)]
ABOUT_NO_EXPIRY = {
    "session-timeout-bounds",
    "session-timeout-without-a-group",
    "refusals-change-nothing",
    "version-0-has-one-timeout",
    "dropped-member-has-no-session",
}
"""Scenarios about session timeouts that no member comes to use, or that must have no effect."""


def let_no_session_end(patch: Patch) -> None:
    """No session ends, nor does the time for an issued id."""
    patch.replace(Rebalancer, "on_member_timer", lambda rounds, group_id, member_id: None)
    patch.replace(Rebalancer, "on_pending_timer", lambda rounds, group_id, member_id: None)


def let_nothing_keep_a_session(patch: Patch) -> None:
    """A session ends when its timeout is over for the first time, whatever extends it or protects from it."""
    arm, ends = Rebalancer._arm_member_timer, dict[str, int]()

    def arm_once(rounds: Rebalancer, group: Group, member: Member, timeout: int) -> None:
        end = ends.setdefault(member.member_id, rounds._runtime.now + min(timeout, member.session_timeout))
        arm(rounds, group, member, max(0, end - rounds._runtime.now))

    def expire(rounds: Rebalancer, group_id: str, member_id: str) -> None:
        group = rounds._runtime.groups.get(group_id)
        if group is not None and member_id in group.members:
            rounds.expel(group, group.members[member_id])

    patch.replace(Rebalancer, "_arm_member_timer", arm_once)
    patch.replace(Rebalancer, "on_member_timer", expire)


async def judge_nothing(header: Header, events: tuple[Event, ...]) -> TraceVerdict:
    """No verdict."""
    return TraceVerdict((), ())


def play(scenario: Scenario, change: Callable[[Patch], None] = lambda patch: None) -> tuple[Event, ...]:
    """The trace of a scenario on a coordinator with a change."""
    with Patch() as patch:
        change(patch)
        player = NewTarget(lambda: InProcessTarget(SETTINGS))
        return run_virtual(player.play(scenario, scenario.name, judge_nothing)).events


def checked_responses(events: tuple[Event, ...]) -> list[tuple[str, Body | None, int]]:
    """What each check looks at: its requirement, the response and its time; None if there is none."""
    responses = {event.of: (event.body, event.time) for event in events if event.kind is Kind.RESPONSE}
    checks = [event for event in events if event.kind is Kind.INTERNAL and event.api == "check"]
    return [(check.body["requirement"], *responses.get(check.of, (None, -1))) for check in checks]


def has_short_sessions(events: tuple[Event, ...]) -> bool:
    """Whether the session of any member may end before the scenario does, without a heartbeat."""
    joins = (event.body for event in events if event.kind is Kind.REQUEST and event.api == "JoinGroup")
    return any(body["session_timeout_ms"] < LONG_MS for body in joins)


def test_sessions_end_only_where_that_is_checked() -> None:
    wrong = []
    for scenario in PLAYED:
        shipped = play(scenario)
        is_short = has_short_sessions(shipped) and scenario.name not in ABOUT_NO_EXPIRY
        changes = (let_no_session_end, let_nothing_keep_a_session) if is_short else (let_no_session_end,)
        matters = any(checked_responses(play(scenario, change)) != checked_responses(shipped) for change in changes)
        if matters != is_short:
            wrong.append(scenario.name)
    assert not wrong, "an expiry may explain what these see, or their short sessions are for nothing"
