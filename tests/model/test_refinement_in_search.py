"""Each step of a bounded search is some actions of the kernel, from every state, with the past of one way there."""

from collections import Counter
from random import Random

import pytest

from fencepost.model.classic.core.state import CommitAnswer, JoinAnswer, SyncRequest
from fencepost.model.classic.kernel.refinement import Shadow, coordinated, judged, moved
from fencepost.model.classic.member.member import PartitionCommit, Sent
from fencepost.model.errors import Error
from fencepost.model.explore.classic.group_search import after, group_system
from fencepost.model.explore.classic.state_layout import Bounds, Coordinator, Heard, Process, Setting, plain
from fencepost.model.explore.search import Row
from fencepost.model.explore.transition_system import Move, Site

ACCEPTED = {"commit.stable", "commit.preparing"}


def followed(shadow: Shadow, row: Row, site: Site, move: Move) -> Shadow:
    """The shadow after a move; raises NotRefined if no action of the kernel explains it."""
    writes = dict(move.writes)
    for column, written in writes.items():
        before = row[column]
        if isinstance(before, Process):
            sent = [Sent(each) for key, each in writes.items() if key != column and each is not None]
            shadow = moved(shadow, before.member, written.member, sent)
        elif isinstance(before, Coordinator):
            request = row[site.columns[1]] if len(site.columns) > 1 else None
            heard = [each.answer for each in writes.values() if isinstance(each, Heard)]
            answers = [answer for answer in heard if isinstance(answer, JoinAnswer)]
            sender = request.member if isinstance(request, SyncRequest) else None
            shadow = coordinated(shadow, before.group, written.group, answers, sender)
            if isinstance(request, PartitionCommit) and move.rule in ACCEPTED:
                parts = [part for part, held in enumerate(request.partitions) if held]
                shadow = judged(shadow, request.request, CommitAnswer(Error.NONE), parts)
    return shadow


TWO = (plain(), plain(cooperative=False))
STATIC = plain(instance="i")


@pytest.mark.parametrize(
    ("setting", "bounds", "states"),
    [
        (Setting((plain(),), heartbeats=False), Bounds(ids=2, generations=3, requests=4), None),
        (Setting((STATIC,), heartbeats=False), Bounds(ids=2, generations=3, requests=4), None),
        (Setting(TWO, heartbeats=False), Bounds(ids=2, generations=3, requests=4), 12_000),
        (Setting((STATIC, plain()), partitions=2, heartbeats=False), Bounds(ids=3, generations=3), 12_000),
    ],
    ids=["one", "one static", "two", "two, one static"],
)
def test_every_step_of_a_bounded_search_refines(setting: Setting, bounds: Bounds, states: int | None) -> None:
    """All states of one process, some of two."""
    system = group_system(setting, bounds)
    known: dict[tuple[str, Row], tuple[Move, ...]] = {}
    shadows: dict[Row, Shadow] = {system.initial: Shadow()}
    waiting, rules, random = [system.initial], Counter[str](), Random(0)
    while waiting and (states is None or len(shadows) < states):
        # In any order where not all is seen, so that deep states are reached too.
        row = waiting.pop(random.randrange(len(waiting)) if random.random() < 0.2 else -1)
        for site in system.sites:
            read = tuple(row[column] for column in site.columns)
            if (site.name, read) not in known:
                known[site.name, read] = tuple(move for move in site.moves(*read) if not move.cut)
            for move in known[site.name, read]:
                rules[move.rule] += 1
                shadow = followed(shadows[row], row, site, move)
                target = after(row, move)
                if target not in shadows:
                    shadows[target] = shadow
                    waiting.append(target)
    assert {"sync.leader", "member.sync.answered"} <= set(rules)
    assert rules["commit.stable"] or states is not None
