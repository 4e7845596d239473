"""Profiles are read strictly: an error is one line with place, problem and remedy."""

import re
from pathlib import Path

import pytest

from fencepost.conformance.cli import main
from fencepost.conformance.profile import (
    CLIENT_SECTIONS,
    DERIVED_CAPABILITIES,
    SECTIONS,
    Profile,
    ProfileError,
    load_profile,
)
from fencepost.model.catalogue.requirement import CAPABILITIES

TARGETS = Path(__file__).parent.parent / "targets"


def write(folder: Path, text: str) -> Path:
    path = folder / "profile.toml"
    path.write_text(text)
    return path


def test_everything_a_profile_can_say(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        """
        [target]
        start = "run 'my broker' --port 0"
        kill = "stop"
        [settings]
        min_session_timeout = 500
        override = true
        [capabilities]
        offers = ["retention", "resize"]
        [known]
        JOIN-29 = "issue 123"
        [timing]
        grace_ms = 250
        """,
    )
    assert load_profile(path) == Profile(
        folder=tmp_path,
        start=("run", "my broker", "--port", "0"),
        kill=("stop",),
        settings={"min_session_timeout": 500},
        overrides_broker=True,
        capabilities=frozenset({"retention", "resize"}),
        deviations={"JOIN-29": "issue 123"},
        grace=250,
    )
    assert load_profile(path).can_restart


def test_an_empty_profile_says_nothing(tmp_path: Path) -> None:
    profile = load_profile(write(tmp_path, ""))
    assert profile == Profile(folder=tmp_path)
    assert not profile.can_restart
    written = write(tmp_path, "[target]\ntopic = 't'\n[limits]\nbackoff_ms = 50\n[known]\nPUSH-21 = 'soon'")
    assert load_profile(written) == Profile(
        folder=tmp_path, topic="t", limits={"backoff_ms": 50}, deviations={"PUSH-21": "soon"}
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "[targets]",
            "targets: unknown section; the sections are target, settings, capabilities, known, about, timing, "
            "security, limits",
        ),
        ("target = 1", "target: not a section; write [target] on a line of its own"),
        ("[target]\nstrat = 'x'", "[target] strat: unknown key; the keys are start, kill, move, keeps_storage, topic"),
        ("[target]\nkill = 'x'", "[target]: kill is of no use without start; give that too"),
        ("[target]\nstart = 1\nkill = 'x'", "[target] start: 1 is not a text; write it in quotes, not empty"),
        ("[target]\nstart = 'x'\nkill = ' '", "[target] kill: ' ' is not a text; write it in quotes, not empty"),
        (
            "[target]\nstart = 'x'\nkill = 'a \"b'",
            "[target] kill: 'a \"b' is not a command: No closing quotation",
        ),
        (
            "[settings]\nsession = 1",
            f"[settings] session: unknown key; the keys are {', '.join(SECTIONS['settings'])}",
        ),
        (
            "[settings]\nmax_group_size = '6'",
            "[settings] max_group_size: '6' is not a whole number from 0 up",
        ),
        ("[settings]\nmax_group_size = true", "[settings] max_group_size: true is not a whole number from 0 up"),
        ("[settings]\nmax_group_size = 0", "[settings] max_group_size: 0 is not from 1 to 2147483647"),
        ("[settings]\noffsets_partitions = 0", "[settings] offsets_partitions: 0 is not from 1 to 2147483647"),
        (
            "[settings]\nmin_session_timeout = 2147483648",
            "[settings] min_session_timeout: 2147483648 is not from 0 to 2147483647",
        ),
        (
            "[settings]\ngroup.max.size = 6",
            "[settings] group.max.size: this is Kafka's name; write max_group_size",
        ),
        (
            "[settings]\ngroup_max_size = 6",
            "[settings] group_max_size: this is Kafka's name; write max_group_size",
        ),
        (
            "[settings]\n'group.initial.rebalance.delay.ms' = 6",
            "[settings] group.initial.rebalance.delay.ms: this is Kafka's name; write initial_rebalance_delay",
        ),
        (
            "[settings]\nmin_session_timeout = 90000\nmax_session_timeout = 10",
            "[settings] min_session_timeout: 90000 is above max_session_timeout, 10",
        ),
        ("[settings]\noverride = 1", "[settings] override: 1 is neither true nor false"),
        ("[timing]\ngrace_ms = -1", "[timing] grace_ms: -1 is not a whole number from 0 up"),
        ("[timing]\ngrace = 1", "[timing] grace: unknown key; the keys are grace_ms"),
        ("[known]\nJOIN-999 = 'x'", "[known] JOIN-999: no such requirement; write an id like JOIN-29"),
        ("[known]\nJOIN-29 = ''", "[known] JOIN-29: '' is not a text; write it in quotes, not empty"),
        (
            "[capabilities]\noffers = 'retention'",
            "[capabilities] offers: 'retention' is not a list; write it in brackets",
        ),
        (
            "[capabilities]\noffers = ['fast']",
            "[capabilities] offers: 'fast' is unknown; the choices are resize, retention, transactions",
        ),
        (
            "[capabilities]\noffers = ['graceful-move']",
            "[capabilities] offers: 'graceful-move' follows from [target] move; leave it out here",
        ),
        ("[target]\nmove = 'x'", "[target] move: 'x' names no group; write {group} where its id goes"),
        (
            "[capabilities]\noffers = ['restart']",
            "[capabilities] offers: 'restart' follows from [target] start; leave it out here",
        ),
        ("[target", "not TOML: Expected ']' at the end of a table declaration (at end of document)"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(tmp_path: Path, text: str, message: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(ProfileError) as raised:
        load_profile(path)
    assert str(raised.value) == f"{path}: {message}"


def test_a_missing_profile_is_named(tmp_path: Path) -> None:
    path = tmp_path / "no.toml"
    with pytest.raises(ProfileError) as raised:
        load_profile(path)
    assert str(raised.value) == f"{path}: No such file or directory; name a readable TOML file"


def test_capabilities_that_follow_are_capabilities() -> None:
    assert set(DERIVED_CAPABILITIES) < set(CAPABILITIES)


@pytest.mark.parametrize("name", ["kafka4", "kafka3", "mock"])
def test_the_profiles_of_our_own_targets(name: str) -> None:
    profile = load_profile(TARGETS / f"{name}.toml")
    assert profile.can_restart
    assert all((profile.folder / command[0]).is_file() for command in (profile.start, profile.kill))


@pytest.mark.parametrize(
    ("encoding", "reason"),
    [
        ("utf-8-sig", "begins with a byte order mark; save it as UTF-8 without one"),
        ("utf-16", "is UTF-16; save it as UTF-8"),
    ],
)
def test_byte_order_marks(encoding: str, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "p.toml"
    path.write_text("[timing]\ngrace_ms = 1\n", encoding=encoding)
    with pytest.raises(ProfileError) as error:
        load_profile(path)
    assert str(error.value) == f"{path}: {reason}"


@pytest.mark.parametrize(
    "text", ["[settings]\nmax_group_size = " + "9" * 6_000, "[known]\nJOIN-29 = " + "[" * 5_000 + "]" * 5_000]
)
def test_what_the_parser_gives_up_on_is_not_toml(tmp_path: Path, text: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(ProfileError) as raised:
        load_profile(path)
    assert str(raised.value).startswith(f"{path}: not TOML: ")


@pytest.mark.parametrize(
    ("text", "section"), [("[target]\nstart = 'x'", "[target]"), ("[security]\ntls = true", "[security]")]
)
def test_the_bundled_coordinator_has_no_start_command_and_no_security(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, section: str
) -> None:
    assert main(["test", "bundled", "--profile", str(write(tmp_path, text))]) == 2
    assert capsys.readouterr().err == (
        f"fencepost: {section} of the profile is for a target that is reached over the network, not for bundled; "
        "name its address, or leave the section out\n"
    )


def test_a_profile_of_a_client(tmp_path: Path) -> None:
    path = write(tmp_path, "[about]\nname = 'acme'\n[known]\nMEMBER-12 = 'fixed in 2.0'\n")
    profile = load_profile(path, CLIENT_SECTIONS)
    assert (dict(profile.about), dict(profile.deviations)) == ({"name": "acme"}, {"MEMBER-12": "fixed in 2.0"})
    for text, problem in (
        ("[target]\nstart = 'x'", "target: unknown section; the sections are known, about"),
        ("[known]\nJOIN-29 = 'x'", "[known] JOIN-29: no such requirement; write an id like MEMBER-12"),
    ):
        path = write(tmp_path, text)
        with pytest.raises(ProfileError, match=re.escape(f"{path}: {problem}")):
            load_profile(path, CLIENT_SECTIONS)
