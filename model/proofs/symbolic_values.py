"""Symbolic values: the truth values, numbers, tokens and claims on which the core runs in a proof.

A proxy stands for a z3 term. Comparing proxies gives a truth value, a plain one if the answer is plain to see. `if` on
a symbolic truth value asks the path that is being executed. Absence (None) is the number 0.
"""

import operator
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from enum import IntEnum
from typing import Any

import z3

from fencepost.model.proofs.terms import (
    FALSE,
    TRUE,
    Term,
    alternative,
    calculation,
    comparison,
    conjunction,
    disjunction,
    equation,
    identical,
    is_false,
    is_true,
    negation,
    numeral,
)

_deciders: list["BranchDecider"] = []


def as_truth(term: Term) -> Any:
    """A truth value: a plain one where the term is constant."""
    if is_true(term):
        return True
    return False if is_false(term) else SymbolicBool(term)


def formula(value: Any) -> Term:
    """The term of a truth value."""
    if value is True:
        return TRUE
    return FALSE if value is False else value.term


class BranchDecider:
    """While this lasts, `if` on a symbolic truth value asks `decide`, and what is given of a value is told `assume`."""

    def __init__(self, decide: Callable[[Term], bool], assume: Callable[[Term], None]) -> None:
        self.decide = decide
        self.assume = assume

    def __enter__(self) -> None:
        _deciders.append(self)

    def __exit__(self, *_: object) -> None:
        _deciders.pop()


def assume(*terms: Term) -> None:
    """Suppose the terms for the rest of the path."""
    for term in terms:
        _deciders[-1].assume(term)


def no_branch(_: Term) -> bool:
    """Refuse to fork a path."""
    raise TypeError("a claim about every element of a symbolic set has no `if`")


class SymbolicBool:
    """A symbolic truth value."""

    __slots__ = ("term",)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, term: Term) -> None:
        self.term = term

    def __bool__(self) -> bool:
        return _deciders[-1].decide(self.term)

    def __and__(self, other: Any) -> Any:
        if other is True or other is False:
            return self if other else False
        return SymbolicBool(conjunction(self.term, other.term))

    __rand__ = __and__

    def __or__(self, other: Any) -> Any:
        if other is True or other is False:
            return True if other else self
        return SymbolicBool(disjunction(self.term, other.term))

    __ror__ = __or__

    def __eq__(self, other: object) -> Any:
        if other is True or other is False:
            return self if other else self.negated()
        return SymbolicBool(equation(self.term, other.term)) if isinstance(other, SymbolicBool) else NotImplemented

    def __ne__(self, other: object) -> Any:
        return negate(self == other)

    def negated(self) -> Any:
        """The opposite."""
        return SymbolicBool(negation(self.term))

    def choose(self, then: Any, otherwise: Any) -> Any:
        """Both values in one."""
        return merge_values(self.term, then, otherwise)


def negate(value: Any) -> Any:
    """The opposite of a truth value of either kind."""
    return value.negated() if isinstance(value, SymbolicBool) else not value


def equal_terms(a: Term, b: Term) -> Any:
    """Whether two numbers are the same, decided at once where it can be."""
    if identical(a, b):
        return True
    if isinstance(a, z3.IntNumRef) and isinstance(b, z3.IntNumRef):
        return False
    return SymbolicBool(equation(a, b))


class SymbolicNumber:
    """A symbolic number, or a symbolic member of an enumeration `kind`."""

    __slots__ = ("kind", "term")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, term: Term, kind: type[IntEnum] | None = None) -> None:
        self.term = term
        self.kind = kind

    def __eq__(self, other: object) -> Any:
        return equal_terms(self.term, number_term(other))

    def __ne__(self, other: object) -> Any:
        return negate(self == other)

    def __lt__(self, other: Any) -> Any:
        return as_truth(comparison(operator.lt, self.term, number_term(other)))

    def __le__(self, other: Any) -> Any:
        return as_truth(comparison(operator.le, self.term, number_term(other)))

    def __gt__(self, other: Any) -> Any:
        return as_truth(comparison(operator.gt, self.term, number_term(other)))

    def __ge__(self, other: Any) -> Any:
        return as_truth(comparison(operator.ge, self.term, number_term(other)))

    def __rsub__(self, other: Any) -> "SymbolicNumber":
        return SymbolicNumber(calculation(operator.sub, number_term(other), self.term))

    def __add__(self, other: Any) -> "SymbolicNumber":
        return SymbolicNumber(calculation(operator.add, self.term, number_term(other)))

    __radd__ = __add__

    def __sub__(self, other: Any) -> "SymbolicNumber":
        return SymbolicNumber(calculation(operator.sub, self.term, number_term(other)))

    def __mul__(self, other: Any) -> "SymbolicNumber":
        return SymbolicNumber(self.term * number_term(other))

    def __floordiv__(self, other: Any) -> "SymbolicNumber":
        """Division by a positive number."""
        return SymbolicNumber(self.term / number_term(other))

    def __bool__(self) -> bool:
        raise TypeError("a number is not a truth value")


def number_term(value: Any) -> Term:
    """The term of a number of either kind."""
    return value.term if isinstance(value, SymbolicNumber) else numeral(value)


class SymbolicToken:
    """A symbolic token; 0 is the absent one."""

    __slots__ = ("term",)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, term: Term) -> None:
        self.term = term

    def __eq__(self, other: object) -> Any:
        return equal_terms(self.term, name_term(other))

    def __ne__(self, other: object) -> Any:
        return negate(self == other)

    def __bool__(self) -> bool:
        raise TypeError("a token is not a truth value")

    def is_absent(self) -> Any:
        """There is no such token."""
        return equal_terms(self.term, numeral(0))


_plain_names: dict[str, int] = {}


def name_term(value: Any) -> Term:
    """The term of a token of either kind. A name that the code spells out is a number below 0, which no symbol is: what
    is proved of symbols is proved of all other names."""
    if value is None:
        return numeral(0)
    if isinstance(value, str):
        return numeral(-1 - _plain_names.setdefault(value, len(_plain_names)))
    return value.term if isinstance(value, SymbolicToken) else numeral(value)


class SymbolicArray:
    """A symbolic array of numbers, of any length."""

    __slots__ = ("term",)

    def __init__(self, term: Term) -> None:
        self.term = term

    def __getitem__(self, position: Any) -> SymbolicNumber:
        return SymbolicNumber(self.term[number_term(position)])

    def put(self, position: Any, value: Any) -> "SymbolicArray":
        """The array with one number exchanged."""
        return SymbolicArray(z3.Store(self.term, number_term(position), number_term(value)))

    def insert(self, position: Any, value: Any) -> "SymbolicArray":
        """The array with another number at this position; those from there on move up by one."""
        here, place = number_term(position), z3.Int("place")
        return SymbolicArray(
            z3.Store(z3.Lambda([place], self.term[place - z3.If(place > here, 1, 0)]), here, number_term(value))
        )

    def drop(self, position: Any) -> "SymbolicArray":
        """The array without the number at this position; those behind it move down by one."""
        here, place = number_term(position), z3.Int("place")
        return SymbolicArray(z3.Lambda([place], self.term[place + z3.If(place >= here, 1, 0)]))


class SymbolicElement:
    """A symbolic element of a sort of which nothing is known but what is the same."""

    __slots__ = ("term",)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, term: Term) -> None:
        self.term = term

    def __eq__(self, other: object) -> Any:
        return equal_terms(self.term, other.term) if isinstance(other, SymbolicElement) else NotImplemented

    def __ne__(self, other: object) -> Any:
        return negate(self == other)

    def __gt__(self, other: "SymbolicElement") -> SymbolicBool:
        return SymbolicBool(negation(order_of(self.term.sort())(self.term, other.term)))


def order_of(sort: Any) -> Any:
    """The relation "is not after" on a sort, of which a proof says what it is."""
    return z3.Function(f"{sort} is not after", sort, sort, z3.BoolSort())


class SymbolicSet:
    """A symbolic frozenset of elements of a sort, of any size, or its absence where it is not `present`."""

    __slots__ = ("present", "term")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, term: Term, present: Any = True) -> None:
        self.term = term
        self.present = present

    @property
    def sort(self) -> Any:
        """The sort of its elements."""
        return self.term.sort().domain()

    def __or__(self, other: Any) -> "SymbolicSet":
        return SymbolicSet(z3.SetUnion(self.term, set_term(other, self.sort)))

    __ror__ = __or__

    def __and__(self, other: Any) -> "SymbolicSet":
        return SymbolicSet(z3.SetIntersect(self.term, set_term(other, self.sort)))

    __rand__ = __and__

    def __sub__(self, other: Any) -> "SymbolicSet":
        return SymbolicSet(z3.SetDifference(self.term, set_term(other, self.sort)))

    def __rsub__(self, other: Any) -> "SymbolicSet":
        return SymbolicSet(z3.SetDifference(set_term(other, self.sort), self.term))

    def __eq__(self, other: object) -> Any:
        if other is None:
            return self.is_absent()
        there = other.present if isinstance(other, SymbolicSet) else True
        alike = SymbolicBool(equation(self.term, set_term(other, self.sort)))
        return conjoin(same_truth(self.present, there), disjoin(negate(there), alike))

    def __ne__(self, other: object) -> Any:
        return negate(self == other)

    def __le__(self, other: Any) -> Any:
        return SymbolicBool(z3.IsSubset(self.term, set_term(other, self.sort)))

    def __ge__(self, other: Any) -> Any:
        return SymbolicBool(z3.IsSubset(set_term(other, self.sort), self.term))

    def __bool__(self) -> bool:
        return bool(self.is_inhabited())

    def has(self, element: SymbolicElement) -> Any:
        """The element is in the set."""
        return as_truth(z3.simplify(z3.Select(self.term, element.term)))

    def is_inhabited(self) -> Any:
        """The set is not empty."""
        return SymbolicBool(negation(equation(self.term, z3.EmptySet(self.sort))))

    def is_absent(self) -> Any:
        """There is no set."""
        return negate(self.present)

    def every(self, claim: Callable[[Any], Any]) -> Any:
        """The claim holds of each element of the set."""
        one = SymbolicElement(z3.Const(f"<each {len(_deciders)}>", self.sort))
        with BranchDecider(no_branch, lambda _: None):
            holds = disjoin(negate(self.has(one)), claim(one))
        return as_truth(z3.ForAll([one.term], formula(holds)))


def set_term(value: Any, sort: Any) -> Term:
    """The term of a set of either kind; a plain one has symbolic elements of this sort."""
    if isinstance(value, SymbolicSet):
        return value.term
    term = z3.EmptySet(sort)
    for element in () if value is None else value:
        term = z3.SetAdd(term, element.term)
    return term


class SymbolicMap:
    """A symbolic dict from elements of a sort to values that are one term each: its keys, and an array of values."""

    __slots__ = ("elements", "term", "wrap")
    __hash__ = None  # type: ignore[assignment]
    __iter__ = None

    def __init__(self, elements: SymbolicSet, term: Term, wrap: Callable[[Term], Any]) -> None:
        self.elements = elements
        self.term = term
        self.wrap = wrap

    def __getitem__(self, element: SymbolicElement) -> Any:
        return self.wrap(z3.simplify(z3.Select(self.term, element.term)))

    def __or__(self, other: Any) -> "SymbolicMap":
        theirs = map_of(other, self)
        later = theirs.elements.term
        value = z3.Const("value", self.term.sort().range())
        either = z3.If(z3.Bool("later"), value, value).decl()
        return SymbolicMap(self.elements | theirs.elements, z3.Map(either, later, theirs.term, self.term), self.wrap)

    def __ror__(self, other: Any) -> "SymbolicMap":
        return map_of(other, self) | self

    def keys(self) -> SymbolicSet:
        """The elements that have a value."""
        return self.elements

    def has(self, element: SymbolicElement) -> Any:
        """The element has a value."""
        return self.elements.has(element)


def map_of(value: Any, like: SymbolicMap) -> SymbolicMap:
    """A dict of either kind as a symbolic one, with values of the other one's sort."""
    if isinstance(value, SymbolicMap):
        return value
    sort, term = like.elements.sort, like.term
    for element, one in value.items():
        term = z3.Store(term, element.term, value_term(one))
    return SymbolicMap(SymbolicSet(set_term(value, sort)), term, like.wrap)


class SymbolicFunction:
    """A function that an adversary chooses: `answer` makes any result for some arguments."""

    __slots__ = ("answer", "answered")

    def __init__(self, answer: Callable[[tuple[Any, ...]], Any]) -> None:
        self.answer = answer
        self.answered: list[tuple[tuple[Any, ...], Any]] = []

    def __call__(self, *arguments: Any) -> Any:
        result = self.answer(arguments)
        self.answered.append((arguments, result))
        return result

    def as_plain(self, plain: Callable[[Any], Any]) -> Callable[..., Any]:
        """The function in plain values: what it answered."""
        table = [(plain(arguments), plain(result)) for arguments, result in self.answered]
        return lambda *asked: next(result for arguments, result in table if arguments == asked)


def value_term(value: Any) -> Term:
    """The term of a value that is one term."""
    if isinstance(value, bool | SymbolicBool):
        return formula(value)
    if isinstance(value, SymbolicSet | SymbolicElement):
        return value.term
    return number_term(value) if isinstance(value, int | SymbolicNumber) else name_term(value)


class SymbolicClaims:
    """Symbolic claims or a symbolic assignment: present or not, and a truth value for each partition."""

    __slots__ = ("flags", "present")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, present: Any, flags: tuple[Any, ...]) -> None:
        self.present = present
        self.flags = flags

    def __len__(self) -> int:
        return len(self.flags)

    def __getitem__(self, partition: int) -> Any:
        return conjoin(self.present, self.flags[partition])

    def __eq__(self, other: object) -> Any:
        theirs = as_claims(other, len(self.flags))
        alike: Any = True
        for mine, flag in zip(self.flags, theirs.flags, strict=True):
            alike = conjoin(alike, same_truth(mine, flag))
        here, there = self.present, theirs.present
        return conjoin(same_truth(here, there), disjoin(negate(here), alike))

    def __ne__(self, other: object) -> Any:
        return negate(self == other)

    def is_absent(self) -> Any:
        """There are none."""
        return negate(self.present)


def as_claims(value: Any, length: int) -> SymbolicClaims:
    """Claims of either kind as symbolic ones."""
    if isinstance(value, SymbolicClaims):
        return value
    return SymbolicClaims(False, (False,) * length) if value is None else SymbolicClaims(True, tuple(value))


def conjoin(a: Any, b: Any) -> Any:
    """Both truth values hold."""
    if a is False or b is False:
        return False
    return b if a is True else a & b


def disjoin(a: Any, b: Any) -> Any:
    """One of the truth values holds."""
    if a is True or b is True:
        return True
    return b if a is False else a | b


def same_truth(a: Any, b: Any) -> Any:
    """The truth values agree."""
    if isinstance(a, SymbolicBool):
        return a == b
    return b == a if isinstance(b, SymbolicBool) else a == b


def is_flags(value: Any) -> bool:
    """The value is a plain tuple of truth values."""
    return isinstance(value, tuple) and bool(value) and all(isinstance(item, SymbolicBool | bool) for item in value)


def merge_values(condition: Term, then: Any, otherwise: Any) -> Any:
    """One value that is `then` where the condition holds, else `otherwise`; shorter tuples are filled with
    blanks."""
    if then is otherwise:
        return then
    if isinstance(then, SymbolicSet) or isinstance(otherwise, SymbolicSet):
        present = _merge_truths(condition, is_there(then), is_there(otherwise))
        sort = then.sort if isinstance(then, SymbolicSet) else otherwise.sort
        return SymbolicSet(z3.If(condition, set_term(then, sort), set_term(otherwise, sort)), present)
    if isinstance(then, SymbolicMap) or isinstance(otherwise, SymbolicMap):
        one, other = (map_of(each, then if isinstance(then, SymbolicMap) else otherwise) for each in (then, otherwise))
        elements = merge_values(condition, one.elements, other.elements)
        return SymbolicMap(elements, z3.If(condition, one.term, other.term), one.wrap)
    if isinstance(then, SymbolicElement):
        return SymbolicElement(z3.If(condition, then.term, otherwise.term))
    if (
        isinstance(then, SymbolicClaims)
        or isinstance(otherwise, SymbolicClaims)
        or (None in (_kind(then), _kind(otherwise)))
    ):
        return _merge_tokens(condition, then, otherwise)
    if isinstance(then, tuple):
        return _merge_tuples(condition, then, otherwise)
    if isinstance(then, SymbolicBool | bool):
        return _merge_truths(condition, then, otherwise)
    if isinstance(then, SymbolicToken) or isinstance(otherwise, SymbolicToken):
        return SymbolicToken(alternative(condition, name_term(then), name_term(otherwise)))
    if isinstance(then, SymbolicArray):
        return SymbolicArray(z3.If(condition, then.term, otherwise.term))
    if is_dataclass(then):
        assert type(then) is type(otherwise)
        return type(then)(  # type: ignore[misc]
            *(merge_values(condition, getattr(then, f.name), getattr(otherwise, f.name)) for f in fields(then))
        )
    a, b = number_term(then), number_term(otherwise)
    if identical(a, b):
        return then
    return SymbolicNumber(alternative(condition, a, b), _enumeration(then) or _enumeration(otherwise))


def is_there(value: Any) -> Any:
    """The set is not absent."""
    return value.present if isinstance(value, SymbolicSet) else value is not None


def _kind(value: Any) -> type | None:
    return None if value is None else type(value)


def _merge_tokens(condition: Term, then: Any, otherwise: Any) -> Any:
    """Merge where one side may be absent."""
    if isinstance(then, SymbolicClaims | tuple) or isinstance(otherwise, SymbolicClaims | tuple):
        length = len(otherwise if then is None else then)
        a, b = as_claims(then, length), as_claims(otherwise, length)
        present = _merge_truths(condition, a.present, b.present)
        return SymbolicClaims(present, _merge_tuples(condition, a.flags, b.flags))
    return SymbolicToken(alternative(condition, name_term(then), name_term(otherwise)))


def _merge_tuples(condition: Term, then: tuple[Any, ...], otherwise: tuple[Any, ...]) -> tuple[Any, ...]:
    longer = then if len(then) > len(otherwise) else otherwise
    padding = tuple(blank_like(item) for item in longer[min(len(then), len(otherwise)) :])
    first = then if longer is then else then + padding
    second = otherwise if longer is otherwise else otherwise + padding
    if len(then) == len(otherwise):
        first, second = then, otherwise
    return tuple(merge_values(condition, a, b) for a, b in zip(first, second, strict=True))


def _merge_truths(condition: Term, then: Any, otherwise: Any) -> Any:
    if then is True:
        return as_truth(condition) if otherwise is False else disjoin(SymbolicBool(condition), otherwise)
    if then is False:
        no = SymbolicBool(condition).negated()
        return no if otherwise is True else conjoin(no, otherwise)
    if otherwise is True:
        return disjoin(SymbolicBool(condition).negated(), then)
    if otherwise is False:
        return conjoin(SymbolicBool(condition), then)
    if identical(then.term, otherwise.term):
        return then
    return SymbolicBool(alternative(condition, then.term, otherwise.term))


def _enumeration(value: Any) -> type[IntEnum] | None:
    if isinstance(value, SymbolicNumber):
        return value.kind
    return type(value) if isinstance(value, IntEnum) else None


def blank_like(value: Any) -> Any:
    """What stands in a longer tuple where the shorter one has nothing."""
    if is_dataclass(value) and not isinstance(value, type):
        return type(value)(*(blank_like(getattr(value, f.name)) for f in fields(value)))
    if isinstance(value, tuple) and not is_flags(value):
        return tuple(blank_like(item) for item in value)
    return None
