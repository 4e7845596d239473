"""The notation of the catalogue: requirements, rules and holes as text, and its strict reader.

A table of requirements is a specification that a person reads. A row begins at the margin with id, level and title;
below it stand the sentence and, in brackets, the sources that it was read from:

    JOIN-02 MUST: Session timeout bounds; needs session-bounds
      A session timeout below the minimum or above the maximum is refused with INVALID_SESSION_TIMEOUT, while both
      bounds themselves are accepted. [GroupCoordinatorServiceTest, GroupCoordinatorTest]

Behind the title stand, each behind a semicolon, what applies of

    needs restart, resize     capabilities without which the requirement cannot be tested
    in passing                a property that is judged wherever a run happens to touch it
    since 2.8.1, KAFKA-12890  the first release of Apache Kafka that keeps it, and the ticket or commit that brought it;
                              what a new version of an API brought needs none, for a target without it is not asked

and behind the sources one of

    presumes JOIN-02, ...     requirements that have to hold first: where one is broken, a violation shows nothing more
    untestable: REASON        no response can show or break the requirement

There are four reasons to presume another requirement, each to be seen in the two sentences. The finer one says more of
what the other one says (which sessions expire, of what is to expire at all). It is about a state or an event that the
other one brings about (members of a group that came back after a failover). It shows only by the other one (that a
request does not extend the session shows by the session's expiry). Or it says which of two checks comes first, and the
other one is one of these checks. Prerequisites of prerequisites count, so that a row names the nearest ones only.

`fencepost.model.catalogue.sources` has the address of a source. A line that begins with # is a heading for readers.

A table of rules has one row for each branch of the handlers, under the API whose requests they handle, or under
`no api: ` and what they are about. A row has the name of the rule, the error of the response (none if the request is
parked or answered per entry), the condition in words, and in brackets the requirements that it satisfies (or `none`),
the first of which is charged with a violation. Behind a semicolon stand the requirements about single fields of the
response; `fields NAME` takes over a list of them that is named at the margin:

    fields join: generation GEN-02, leader GEN-05
    api JoinGroup
      join.invalid-group INVALID_GROUP_ID: the group id is empty [JOIN-01]
      join.completing.same-protocols NONE: a member asks again in the sync phase with the same protocols
        [JOIN-29; fields join, generation JOIN-29]

A table of holes has one row for each gap or contradiction of a design: id and title, what is wrong with the places in
the design, and the weakest repair with the requirements that the hole breaks:

    PUSH-H17: Startup accepts before it listens
      Registrations are accepted before the expiry listener and the handlers exist. [draft, section 3]
      Both are there before the election. [PUSH-06]
"""

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from fencepost.model.catalogue.requirement import Change, Level, Requirement, Verifiability
from fencepost.model.catalogue.specification import NOTHING, Hole, Rule

_LEVELS = {level.value: level for level in Level}


class TableError(ValueError):
    """A row of a table breaks the notation; the message is one line with the number of the row's first line."""


def read_requirements(
    *tables: str, capabilities: Mapping[str, str] = NOTHING
) -> tuple[Mapping[str, Requirement], Mapping[str, tuple[str, ...]]]:
    """The requirements of tables by their id, in the order of the rows, and the nearest prerequisites of those that
    have some; `capabilities` are what they may need.

    Raises `TableError`.
    """
    found: dict[str, Requirement] = {}
    prerequisites: dict[str, tuple[str, ...]] = {}
    last = ("", 0)
    for table in tables:
        for line, row in _rows(table, 2):
            requirement, presumed = _read_requirement(line, row, capabilities)
            family, _, number = requirement.id.rpartition("-")
            expected = last[1] + 1 if family == last[0] else 1
            if number != f"{expected:02}" or requirement.id in found:
                raise _error(line, f"{requirement.id} is out of turn", f"the next id here is {family}-{expected:02}")
            last = (family, expected)
            found[requirement.id] = requirement
            if presumed:
                prerequisites[requirement.id] = presumed
    for id, presumed in prerequisites.items():
        if not found.keys() >= set(presumed):
            raise TableError(f"{id} presumes {', '.join(presumed)}; name requirements of the same tables")
    return MappingProxyType(found), MappingProxyType(prerequisites)


def read_rules(
    *tables: str, requirements: Mapping[str, Requirement], errors: Mapping[str, int] = NOTHING
) -> Mapping[str, Rule]:
    """The rules of tables by their name, in the order of the rows; they name `requirements` and `errors`.

    Raises `TableError`.
    """
    found: dict[str, Rule] = {}
    shared: dict[str, Mapping[str, str]] = {}
    for table in tables:
        api = ""
        for line, row in _rows(table, 4):
            row = row.replace("\n", " ")
            if row.startswith("  "):
                rule = _read_rule(line, row[2:], api, errors, shared)
                unknown = {*rule.requirements, *rule.fields.values()} - requirements.keys()
                if unknown:
                    raise _error(line, f"{rule.name} names {min(unknown)}", "name a requirement of the catalogue")
                if rule.name in found:
                    raise _error(line, f"{rule.name} is there twice", "give one of the two another name")
                found[rule.name] = rule
                continue
            heading, _, text = row.partition(": ")
            kind, _, name = heading.partition(" ")
            api = name if kind == "api" and not text else ""
            if kind == "fields" and text:
                shared[name] = _read_fields(line, text, shared)
            elif not api and not (heading == "no api" and text):
                raise _error(line, f"no heading: {row!r}", "begin with 'api NAME', 'no api: ' or 'fields NAME: '")
    return MappingProxyType(found)


def read_holes(table: str, requirements: Mapping[str, Requirement]) -> Mapping[str, Hole]:
    """The holes of a table by their id, in the order of the rows; they name `requirements`. Raises `TableError`."""
    found = {}
    for line, row in _rows(table, 2):
        head, _, body = row.partition("\n")
        id, colon, title = head.partition(": ")
        wrong, _, remedy = body.replace("\n", " ").partition("] ")
        sentence, _, source = wrong.rpartition(" [")
        repair, bracket, broken = remedy.rpartition(" [")
        if not colon or not sentence.endswith(".") or not bracket or not broken.endswith("]"):
            raise _error(line, f"no hole: {head!r}", "write ID: Title, what is wrong [PLACE], a repair [REQUIREMENTS]")
        hole = Hole(id, title, sentence, source, repair, tuple(broken[:-1].split(", ")))
        if id in found or not requirements.keys() >= set(hole.requirements):
            raise _error(line, f"{id} is there twice, or breaks no such requirement", "name requirements of the design")
        found[id] = hole
    return MappingProxyType(found)


def _rows(table: str, depth: int) -> Iterator[tuple[int, str]]:
    """The rows of a table, each with the number of its first line. A line that is as deep as `depth` belongs to the row
    of the line before it."""
    indentation = " " * depth
    start, row = 0, ""
    for number, line in enumerate(table.splitlines(), 1):
        if line.startswith(indentation):
            if not row:
                raise _error(number, f"no row is open before {line.strip()!r}", f"move it {depth} columns to the left")
            row += f"\n{line.lstrip()}"
        elif line and line[0] != "#":
            if row:
                yield start, row
            start, row = number, line
    if row:
        yield start, row


def _read_requirement(line: int, row: str, capabilities: Mapping[str, str]) -> tuple[Requirement, tuple[str, ...]]:
    """A requirement, and the ids of its nearest prerequisites."""
    head, _, body = row.partition("\n")
    id, _, rest = head.partition(" ")
    level, colon, rest = rest.partition(": ")
    if not colon or level not in _LEVELS:
        raise _error(line, f"no head of a requirement: {head!r}", "write 'ID LEVEL: Title' with MUST, SHOULD or MAY")
    title, *options = rest.split("; ")
    cited, bracket, more = body.replace("\n", " ").rpartition("]")
    sentence, opening, source = cited.rpartition(" [")
    if not bracket or not opening or not source or not sentence.endswith("."):
        raise _error(line, f"{id} lacks a sentence with its source", "write below the title: The sentence. [SOURCE]")
    needs: tuple[str, ...] = ()
    since = None
    passing = False
    for option in options:
        kind, _, value = option.partition(" ")
        if kind == "needs":
            needs = tuple(value.split(", "))
        elif kind == "since" and ", " in value:
            release, _, ticket = value.partition(", ")
            since = Change(release, ticket)
        elif option == "in passing":
            passing = True
        else:
            raise _error(
                line, f"{id} has the option {option!r}", "say 'needs ...', 'since RELEASE, TICKET' or 'in passing'"
            )
    if not capabilities.keys() >= set(needs):
        unknown = next(need for need in needs if need not in capabilities)
        raise _error(line, f"{id} needs {unknown!r}", f"name capabilities: {', '.join(capabilities)}")
    presumed = tuple(more.removeprefix(" presumes ").split(", ")) if more.startswith(" presumes ") else ()
    why = more.removeprefix(" untestable: ") if more.startswith(" untestable: ") else ""
    if more and not presumed and not why:
        raise _error(line, f"{id} goes on with {more!r} behind its source", "say 'presumes ...' or 'untestable: ...'")
    if why:
        testability = Verifiability.UNTESTABLE
    elif passing:
        testability = Verifiability.INCIDENTAL
    else:
        testability = Verifiability.RESTART if "restart" in needs else Verifiability.CHECKED
    return Requirement(id, _LEVELS[level], title, sentence, source, testability, needs, why, since), presumed


def _read_rule(
    line: int, row: str, api: str, errors: Mapping[str, int], shared: Mapping[str, Mapping[str, str]]
) -> Rule:
    head, colon, rest = row.partition(": ")
    name, _, error = head.partition(" ")
    guard, bracket, cited = rest.rpartition(" [")
    if not colon or not bracket or not cited.endswith("]"):
        raise _error(line, f"no rule: {row!r}", "write NAME ERROR: the condition [REQUIREMENTS]")
    if error and error not in errors:
        raise _error(line, f"{name} answers with {error}", "name an error of the protocol, or none")
    requirements, _, fields = cited[:-1].partition("; ")
    if not requirements:
        raise _error(line, f"{name} satisfies no requirement", "name one in the brackets, or write 'none'")
    satisfied = () if requirements == "none" else tuple(requirements.split())
    by_field = _read_fields(line, fields, shared) if fields else NOTHING
    return Rule(name, api, errors[error] if error else None, guard, satisfied, by_field)


def _read_fields(line: int, text: str, shared: Mapping[str, Mapping[str, str]]) -> Mapping[str, str]:
    """The requirements about single fields: "fields join, generation JOIN-29", say."""
    found: dict[str, str] = {}
    for entry in text.split(", "):
        field, _, value = entry.partition(" ")
        if not value or (field == "fields" and value not in shared):
            raise _error(line, f"no field with its requirement: {entry!r}", "write FIELD ID, or name a list from above")
        found |= shared[value] if field == "fields" else {field: value}
    return MappingProxyType(found)


def _error(line: int, problem: str, remedy: str) -> TableError:
    return TableError(f"line {line} of the table: {problem}; {remedy}")
