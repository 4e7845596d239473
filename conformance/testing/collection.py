"""The options of the plugin, and the cases that pytest collects by them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar, overload

import pytest

from fencepost.conformance.profile import load_profile
from fencepost.conformance.run.schedule import BATCH_SIZE
from fencepost.conformance.specification import DEFAULT_SPECIFICATION
from fencepost.conformance.subject import select_requirements
from fencepost.conformance.testing.case import CaseId
from fencepost.conformance.testing.runs import RunChoices
from fencepost.model.catalogue.requirement import UnknownRequirement, matching_ids

# -- the options of the pytest plugin ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PluginOptions:
    """What the user asks for: the address of the `target` ("" for none), the patterns of requirements, how many random
    schedules, and the `json` and `html` files for the report."""

    target: str
    profile: Path | None
    only: tuple[str, ...]
    smoke: bool
    seed: int
    schedules: int
    save: Path | None
    json: Path | None
    html: Path | None
    skips_undecided: bool

    def choices(self) -> RunChoices:
        """The choices for runs. Raises `ProfileError`, and `OSError` if the folder for traces cannot be made."""
        if self.save is not None:
            self.save.mkdir(parents=True, exist_ok=True)
        profile = load_profile(self.profile)
        return RunChoices(profile, self.seed, self.smoke, self.save)


def read_options(config: pytest.Config) -> PluginOptions:
    """The options of a session. Raises `pytest.UsageError` for a value that is none."""
    undecided = str(config.getini("fencepost_inconclusive")) or "fail"
    if undecided not in ("fail", "skip"):
        raise pytest.UsageError(f"fencepost_inconclusive: {undecided!r} is neither fail nor skip")
    return PluginOptions(
        target=text_of(config, "target"),
        profile=path_of(config, "profile"),
        only=tuple(config.getoption("fencepost_only") or str(config.getini("fencepost_only")).split()),
        smoke=is_set(config, "smoke"),
        seed=number_of(config, "seed"),
        schedules=number_of(config, "schedules"),
        save=path_of(config, "save"),
        json=path_of(config, "json"),
        html=path_of(config, "html"),
        skips_undecided=undecided == "skip",
    )


def text_of(config: pytest.Config, name: str) -> str:
    """The value of an option, "" without one."""
    given = config.getoption(f"fencepost_{name}")
    return str(given) if given is not None else str(config.getini(f"fencepost_{name}"))


def is_set(config: pytest.Config, name: str) -> bool:
    """Whether a flag is given. Raises `pytest.UsageError`."""
    text = str(config.getini(f"fencepost_{name}")).lower()
    if text not in ("", "true", "false"):
        raise pytest.UsageError(f"fencepost_{name}: {text!r} is neither true nor false")
    return bool(config.getoption(f"fencepost_{name}")) or text == "true"


def path_of(config: pytest.Config, name: str) -> Path | None:
    """The path that an option gives; in a configuration file it is relative to the root of the tests."""
    given = config.getoption(f"fencepost_{name}")
    text = text_of(config, name)
    base = config.invocation_params.dir if given is not None else config.rootpath
    return base / text if text else None


def number_of(config: pytest.Config, name: str) -> int:
    """The number that an option gives, 0 without one. Raises `pytest.UsageError`."""
    text = text_of(config, name) or "0"
    if not text.isdecimal():
        raise pytest.UsageError(f"fencepost_{name}: {text!r} is not a whole number from 0 up")
    return int(text)


# -- from tests to test cases -----------------------------------------------------------------------------------------

F = TypeVar("F", bound=Callable[..., Any])
CASE = "fencepost_case"
MARKER = "fencepost_conformance"
SCHEDULES = "fencepost_schedules"


@dataclass(frozen=True, slots=True)
class CaseChoice:
    """What a test asks for: patterns of requirements (none: all), those that it leaves out, and declared deviations
    with their reasons."""

    patterns: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    known: Mapping[str, str] = field(default_factory=dict)


@overload
def conformance(test: F, /) -> F: ...


@overload
def conformance(
    *patterns: str, exclude: Sequence[str] = (), known: Mapping[str, str] | None = None
) -> Callable[[F], F]: ...


def conformance(*patterns: Any, exclude: Sequence[str] = (), known: Mapping[str, str] | None = None) -> Any:
    """Turn a test that takes `fencepost_case` into one test case for each requirement.

        @conformance
        def test_group_protocol(fencepost_case):
            fencepost_case.check()

    `patterns` such as "JOIN-*" choose requirements, all by default, and `exclude` leaves some out. `known` declares
    deviations by requirement, with reasons: such a case is expected to fail, and one that passes is a failure.
    """
    if len(patterns) == 1 and callable(patterns[0]):
        return conformance()(patterns[0])
    choice = CaseChoice(tuple(patterns), tuple(exclude), dict(known or {}))
    return getattr(pytest.mark, MARKER)(choice)


def parametrize_cases(metafunc: pytest.Metafunc) -> None:
    """Make the test cases of a test. What it asks for in vain is an error of its collection."""
    choice = choice_of(metafunc.definition)
    if choice is None:
        raise pytest.Collector.CollectError(
            f"{metafunc.function.__name__}: takes fencepost_case; put @fencepost.testing.conformance on it"
        )
    try:
        cases = list(case_ids(choice, metafunc.definition, read_options(metafunc.config)))
    except (UnknownRequirement, pytest.UsageError) as error:
        raise pytest.Collector.CollectError(f"{metafunc.function.__name__}: {error}") from None
    marked = [pytest.param(case, id=str(case), marks=pytest.mark.fencepost(str(case))) for case in cases]
    metafunc.parametrize(CASE, marked, indirect=True)


def choice_of(node: pytest.Item) -> CaseChoice | None:
    """What a test asks for; None if it is not marked."""
    marker = node.get_closest_marker(MARKER)
    return marker.args[0] if marker is not None else None


def case_ids(choice: CaseChoice, node: pytest.Item, options: PluginOptions) -> Iterator[CaseId]:
    """The test cases of a test: its requirements, then its batches of random schedules. Raises `UnknownRequirement`."""
    matching_ids(DEFAULT_SPECIFICATION.requirements.values(), tuple(choice.known))
    wanted = {each.id for each in select_requirements(options.only)}
    for requirement in select_requirements(choice.patterns, choice.exclude):
        if requirement.id in wanted:
            yield CaseId(requirement.id)
    marker = node.get_closest_marker(SCHEDULES)
    count, seed = read_schedules(*marker.args, **marker.kwargs) if marker is not None else (0, options.seed)
    count = options.schedules or count
    for batch, begin in enumerate(range(0, count, BATCH_SIZE)):
        yield CaseId(batch=batch, size=min(BATCH_SIZE, count - begin), seed=options.seed or seed)


def read_schedules(n: int, seed: int = 0) -> tuple[int, int]:
    """The arguments of the marker `fencepost_schedules`."""
    return n, seed
