"""The options of the pytest plugin, on the command line and under the same names in the configuration file."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from fencepost.conformance.profile import Profile, load_profile
from fencepost.conformance.testing.runs import RunChoices


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
        profile = load_profile(self.profile) if self.profile is not None else Profile()
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
