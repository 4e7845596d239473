"""What hunts share changes nothing but the time they take."""

import time
from functools import partial

import pytest

from fencepost.conformance.execution.play import Judging, Played
from fencepost.conformance.run.bundled import BUNDLED_SETTINGS
from fencepost.conformance.schedules.classic.generation import Ground
from fencepost.conformance.schedules.falsify import Blank, Field, Quarry, drawn_from, search
from fencepost.conformance.schedules.schedule import Schedule
from fencepost.conformance.zoo import cache
from fencepost.conformance.zoo.cache import Familiar, Watch, drawn, known, patiently, reached
from fencepost.conformance.zoo.faulty import Specimen, specimen
from fencepost.conformance.zoo.timeouts import Stuck
from fencepost.traces.events import Event, Header
from fencepost.traces.judge.judge import judge
from fencepost.traces.verdict import TraceVerdict

SEED = 1
SOURCE = partial(drawn_from, Ground(BUNDLED_SETTINGS))
BUG, MUTANT = "BUG-12", "leaving.Leaving.remove_entry: always: not member_id -> True"


def alone(hunted: Specimen, schedules: int) -> Quarry | Blank:
    """What comes of a hunt that shares nothing, by a clock that counts schedules."""
    with hunted.applied() as make_target:
        ticks = iter(range(10_000))
        return search(
            Field(partial(make_target, BUNDLED_SETTINGS)), SOURCE(SEED), schedules, 0, lambda: float(next(ticks))
        )


def together(hunted: Specimen, schedules: int) -> Quarry | Blank:
    """The same with what is shared."""
    with hunted.field(Watch()) as field:
        assert isinstance(field, Familiar)
        ticks = iter(range(10_000))
        return search(field, lambda chunk: drawn(SOURCE, SEED, chunk)[0], schedules, 0, lambda: float(next(ticks)))


@pytest.mark.parametrize("name", [BUG, MUTANT])
def test_a_hunt_finds_the_same_in_as_many_schedules(name: str) -> None:
    one, other = alone(specimen(name), 60), together(specimen(name), 60)
    assert isinstance(one, Quarry) and isinstance(other, Quarry)
    assert (one.requirement, one.schedules, one.drawn, one.shortest) == (
        other.requirement,
        other.schedules,
        other.drawn,
        other.shortest,
    )


def test_only_what_differs_from_the_shipped_coordinator_is_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    judged: list[int] = []

    def counted(header: Header, events: tuple[Event, ...]) -> TraceVerdict:
        judged.append(len(events))
        return judge(header, events)

    schedules, _ = drawn(SOURCE, SEED, 0)
    for schedule in schedules:
        known(schedule, BUNDLED_SETTINGS)
    monkeypatch.setattr(cache, "judge", counted)
    with specimen("BUG-30").field(Watch()) as field:
        found = [bool(field.first_look(each)) for each in schedules]
    assert sum(found) <= len(judged) < len(schedules)
    with specimen("BUG-30").applied() as make_target:
        plain = Field(partial(make_target, BUNDLED_SETTINGS))
        assert [bool(plain.broken(each)) for each in schedules] == found


def test_only_what_gets_to_the_changed_lines_is_played(monkeypatch: pytest.MonkeyPatch) -> None:
    schedules, _ = drawn(SOURCE, SEED, 0)
    for schedule in schedules:
        known(schedule, BUNDLED_SETTINGS)
        reached(schedule, BUNDLED_SETTINGS)
    played: list[str] = []
    perform = Familiar.perform

    def counted(field: Familiar, schedule: Schedule, judging: Judging | None = None) -> Played:
        played.append(schedule.name)
        return perform(field, schedule, judging)

    monkeypatch.setattr(Familiar, "perform", counted)
    mutant = specimen(MUTANT)
    with mutant.field(Watch()) as field:
        found = [bool(field.first_look(each)) for each in schedules]
    assert 0 < len(played) < len(schedules)
    with mutant.applied() as make_target:
        plain = Field(partial(make_target, BUNDLED_SETTINGS))
        assert [bool(plain.broken(each)) for each in schedules] == found


def test_what_takes_too_long_is_nothing_unless_the_coordinator_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    def stuck(inside: bool) -> frozenset[str]:
        raise Stuck(inside)

    assert patiently(lambda: frozenset({"HB-06"})) == {"HB-06"}
    assert patiently(lambda: stuck(False)) == frozenset()
    with pytest.raises(Stuck):
        patiently(lambda: stuck(True))

    def slow(header: Header, events: tuple[Event, ...]) -> TraceVerdict:
        begun = time.process_time()
        while time.process_time() - begun < 1:
            pass
        return judge(header, events)

    (schedules, _), found = drawn(SOURCE, SEED, 0), []
    with specimen(BUG).field(Watch()) as field:
        monkeypatch.setattr(cache, "PLAY_SECONDS", 0.5)
        monkeypatch.setattr("fencepost.conformance.execution.play.judge", slow)
        found += [field.broken(each) for each in schedules[:1]]
    assert found == [frozenset()]


def test_what_is_known_is_of_a_coordinator_without_the_bug() -> None:
    known.cache_clear()
    schedule = drawn(SOURCE, SEED, 0)[0][3]
    with specimen(BUG).field(Watch()) as field:
        field.first_look(schedule)
    remembered = known(schedule, BUNDLED_SETTINGS)
    known.cache_clear()
    assert remembered.digest == known(schedule, BUNDLED_SETTINGS).digest
    assert remembered.verdict.faults == ()


def test_a_watch_counts_what_was_spared_and_not_what_is_free() -> None:
    watch = Watch()
    begun = watch()
    watch.pay(5.0)
    assert 5.0 <= watch() - begun < 6.0

    def work() -> str:
        end = time.process_time() + 0.05
        while time.process_time() < end:
            pass
        return "done"

    before, real = watch(), time.process_time()
    assert watch.free(work) == "done"
    assert watch() - before < (time.process_time() - real) / 2
