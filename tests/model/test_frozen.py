"""Values of `fast_frozen` classes behave in every respect like those of frozen dataclasses."""

import copy
import pickle
from collections.abc import Mapping
from dataclasses import FrozenInstanceError, dataclass, field, fields, replace

import pytest

from fencepost.model.frozen import evolve, fast_frozen


@fast_frozen
@dataclass(frozen=True, slots=True)
class Quick:
    kind: str
    value: int = 7
    self: Mapping[str, int] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class Plain:
    kind: str
    value: int = 7
    self: Mapping[str, int] = field(default_factory=dict, hash=False)


@fast_frozen
@dataclass(frozen=True, slots=True)
class Bare:
    pass


def describe_error(value: object) -> str:
    return repr(value).replace("Plain", "Quick")


@pytest.mark.parametrize("arguments", [("a",), ("a", 1), ("a", 1, {"b": 2})])
def test_a_quick_value_is_like_a_plain_one(arguments: tuple[object, ...]) -> None:
    made, plain = Quick(*arguments), Plain(*arguments)  # type: ignore[arg-type]
    assert describe_error(made) == describe_error(plain)
    assert type(made) is Quick
    assert (made == Quick(*arguments), hash(made)) == (True, hash(plain))  # type: ignore[arg-type]
    assert (
        describe_error(evolve(made, value=9))
        == describe_error(replace(plain, value=9))
        == describe_error(replace(made, value=9))
    )
    assert [each.name for each in fields(made)] == [each.name for each in fields(plain)]


def test_arguments_by_name_and_defaults_of_its_own() -> None:
    assert Quick(value=1, kind="a") == Quick("a", 1)
    one, other = Quick("a"), Quick("a")
    assert one.self is not other.self
    assert Bare() == Bare()


def test_it_stays_frozen() -> None:
    made = evolve(Quick("a"), kind="b")
    with pytest.raises(FrozenInstanceError):
        made.kind = "c"  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        Quick("a").value = 1  # type: ignore[misc]


def test_copies_and_pickles() -> None:
    made = Quick("a", 3, {"b": 1})
    assert copy.copy(made) == copy.deepcopy(made) == pickle.loads(pickle.dumps(made)) == made


@pytest.mark.parametrize("arguments", [(), ("a", 1, {}, 2)])
def test_wrong_arguments_are_refused(arguments: tuple[object, ...]) -> None:
    with pytest.raises(TypeError):
        Quick(*arguments)  # type: ignore[arg-type]


def test_an_unknown_field_is_refused() -> None:
    with pytest.raises(TypeError, match="Quick has no field 'colour'"):
        evolve(Quick("a"), colour=1)
