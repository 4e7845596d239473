"""The notation of the catalogue: what a row says, and one line for each way in which it can be wrong."""

import re

import pytest

from fencepost.model.catalogue.methods import read_methods
from fencepost.model.catalogue.notation import TableError, read_holes, read_requirements, read_rules
from fencepost.model.catalogue.requirement import Change, Level, Requirement, Verifiability
from fencepost.model.catalogue.sources import links_for, links_of
from fencepost.model.catalogue.specification import Hole, Rule
from fencepost.model.classic.catalogue import CATALOGUE, CLASSIC
from fencepost.model.classic.catalogue.client import CLASSIC_CLIENT, CLIENT_CATALOGUE

WITHOUT_ADDRESS = {
    "Kafka: The Definitive Guide",
    "our own requirement; Apache Kafka breaks it",
    "theorems of this project",
}
"""Sources that are no page on the web."""
REQUIREMENTS = """
# A family
TOY-01 MUST: First; needs restart, slow; since 2.8.1, KAFKA-12890
  A sentence goes on
  here; and ends. [KIP-1, our own; others break it]
TOY-02 SHOULD: Second; in passing
  It should. [A book] presumes TOY-01, TOY-03
TOY-03 MAY: Third
  It may. [KIP-2]
  untestable: a permission: no response can break it
"""
RULES = """
fields ping: id TOY-02, value
    TOY-03
api Ping
  ping.late LATE: it comes late,
    or never [TOY-01 TOY-02]
  ping.early: it comes early: too early [TOY-02; fields ping, value TOY-01, time TOY-03]
no api: timers
  timer: time is over [TOY-03]
"""
CAPABILITIES = {"restart": "", "slow": ""}
ERRORS = {"LATE": 7}
ROW = "TOY-01 MUST: First\n  A sentence. [KIP-1]\n"


def test_rows_of_requirements() -> None:
    requirements, prerequisites = read_requirements(REQUIREMENTS, capabilities=CAPABILITIES)
    assert requirements == {
        "TOY-01": Requirement(
            "TOY-01",
            Level.MUST,
            "First",
            "A sentence goes on here; and ends.",
            "KIP-1, our own; others break it",
            Verifiability.RESTART,
            ("restart", "slow"),
            since=Change("2.8.1", "KAFKA-12890"),
        ),
        "TOY-02": Requirement("TOY-02", Level.SHOULD, "Second", "It should.", "A book", Verifiability.INCIDENTAL),
        "TOY-03": Requirement(
            "TOY-03",
            Level.MAY,
            "Third",
            "It may.",
            "KIP-2",
            Verifiability.UNTESTABLE,
            why="a permission: no response can break it",
        ),
    }
    assert prerequisites == {"TOY-02": ("TOY-01", "TOY-03")}


def test_rows_of_rules() -> None:
    requirements, _ = read_requirements(REQUIREMENTS, capabilities=CAPABILITIES)
    fields = {"id": "TOY-02", "value": "TOY-01", "time": "TOY-03"}
    assert read_rules(RULES, requirements=requirements, errors=ERRORS) == {
        "ping.late": Rule("ping.late", "Ping", 7, "it comes late, or never", ("TOY-01", "TOY-02")),
        "ping.early": Rule("ping.early", "Ping", None, "it comes early: too early", ("TOY-02",), fields),
        "timer": Rule("timer", "", None, "time is over", ("TOY-03",)),
    }


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("  TOY-01", "line 1 of the table: no row is open before 'TOY-01'; move it 2 columns to the left"),
        (
            "TOY-01 SHALL: First\n  A. [B]",
            "line 1 of the table: no head of a requirement: 'TOY-01 SHALL: First'; "
            "write 'ID LEVEL: Title' with MUST, SHOULD or MAY",
        ),
        (
            ROW + "TOY-02 MUST: Second\n  A sentence.",
            "line 3 of the table: TOY-02 lacks a sentence with its source; "
            "write below the title: The sentence. [SOURCE]",
        ),
        (
            ROW + "TOY-02 MUST: Second\n  A sentence [B]",
            "line 3 of the table: TOY-02 lacks a sentence with its source; "
            "write below the title: The sentence. [SOURCE]",
        ),
        (
            "TOY-01 MUST: First; slow\n  A. [B]",
            "line 1 of the table: TOY-01 has the option 'slow'; "
            "say 'needs ...', 'since RELEASE, TICKET' or 'in passing'",
        ),
        (
            "TOY-01 MUST: First; since 2.8\n  A. [B]",
            "line 1 of the table: TOY-01 has the option 'since 2.8'; "
            "say 'needs ...', 'since RELEASE, TICKET' or 'in passing'",
        ),
        (
            "TOY-01 MUST: First; needs luck\n  A. [B]",
            "line 1 of the table: TOY-01 needs 'luck'; name capabilities: restart, slow",
        ),
        (
            "TOY-01 MUST: First\n  A. [B] assumes TOY-02",
            "line 1 of the table: TOY-01 goes on with ' assumes TOY-02' behind its source; "
            "say 'presumes ...' or 'untestable: ...'",
        ),
        (ROW + "TOY-03 MUST: X\n  A. [B]", "line 3 of the table: TOY-03 is out of turn; the next id here is TOY-02"),
        (ROW + ROW, "line 3 of the table: TOY-01 is out of turn; the next id here is TOY-02"),
        (ROW.rstrip() + " presumes TOY-07", "TOY-01 presumes TOY-07; name requirements of the same tables"),
    ],
)
def test_a_wrong_row_of_a_requirement_is_told_in_one_line(table: str, message: str) -> None:
    with pytest.raises(TableError) as caught:
        read_requirements(table, capabilities=CAPABILITIES)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("Ping", "no heading: 'Ping'; begin with 'api NAME', 'no api: ' or 'fields NAME: '"),
        (
            "api Ping: of a client",
            "no heading: 'api Ping: of a client'; begin with 'api NAME', 'no api: ' or 'fields NAME: '",
        ),
        (
            "api A\n  ping it comes [TOY-01]",
            "no rule: 'ping it comes [TOY-01]'; write NAME ERROR: the condition [REQUIREMENTS]",
        ),
        ("api A\n  ping: it comes", "no rule: 'ping: it comes'; write NAME ERROR: the condition [REQUIREMENTS]"),
        ("api A\n  ping EARLY: it comes [TOY-01]", "ping answers with EARLY; name an error of the protocol, or none"),
        ("api A\n  ping: it comes []", "ping satisfies no requirement; name one in the brackets, or write 'none'"),
        ("api A\n  ping: it comes [TOY-04]", "ping names TOY-04; name a requirement of the catalogue"),
        ("api A\n  ping: it comes [TOY-01; id TOY-05]", "ping names TOY-05; name a requirement of the catalogue"),
        (
            "api A\n  ping: it comes [TOY-01; id]",
            "no field with its requirement: 'id'; write FIELD ID, or name a list from above",
        ),
        (
            "api A\n  ping: it comes [TOY-01; fields pong]",
            "no field with its requirement: 'fields pong'; write FIELD ID, or name a list from above",
        ),
        ("api A\n  p: a [TOY-01]\n  p: b [TOY-01]", "p is there twice; give one of the two another name"),
    ],
)
def test_a_wrong_row_of_a_rule_is_told_in_one_line(table: str, message: str) -> None:
    requirements, _ = read_requirements(REQUIREMENTS, capabilities=CAPABILITIES)
    with pytest.raises(TableError) as caught:
        read_rules(table, requirements=requirements, errors=ERRORS)
    assert str(caught.value) == f"line {1 + table.count(chr(10))} of the table: {message}"


def test_rows_of_holes() -> None:
    requirements, _ = read_requirements(REQUIREMENTS, capabilities=CAPABILITIES)
    row = "TOY-H01: A hole\n  It is wrong\n  here. [page, section 1 (2)]\n  Mend it. [TOY-01, TOY-02]"
    hole = Hole("TOY-H01", "A hole", "It is wrong here.", "page, section 1 (2)", "Mend it.", ("TOY-01", "TOY-02"))
    assert read_holes(row, requirements) == {"TOY-H01": hole}
    for wrong in (row.replace(": ", " "), row.replace("here. [", "here ["), row.replace("[TOY-01, TOY-02]", "")):
        with pytest.raises(TableError, match="line 1 of the table: no hole: "):
            read_holes(wrong, requirements)
    for wrong in (row.replace("TOY-02", "TOY-09"), f"{row}\n{row}"):
        with pytest.raises(TableError, match="TOY-H01 is there twice, or breaks no such requirement"):
            read_holes(wrong, requirements)


def test_the_address_of_a_source_belongs_to_it() -> None:
    links = dict(links_of("KIP-394, JoinGroupRequestTest, KAFKA-7909, Apache Kafka source"))
    assert links["KAFKA-7909"] == "https://issues.apache.org/jira/browse/KAFKA-7909"
    assert links["Apache Kafka source"] is None
    for requirement in (*CATALOGUE.values(), *CLIENT_CATALOGUE.values()):
        for name, address in links_of(requirement.source):
            words = re.sub(" (source|documentation)$", "", name).partition(".")[0].lower().split()
            assert address is None or "pageId=" in address or all(word in address.lower() for word in words), (
                requirement.id
            )
            is_method = re.fullmatch(r"\w+\.[a-z]\w+", name) is not None and not name.endswith(".json")
            assert not is_method or re.search(r"\.(java|scala)#L\d+$", address or ""), requirement.id
            assert address is not None or not name.endswith("Test"), requirement.id


def test_sources_without_a_name_of_their_own_are_files_of_the_apis() -> None:
    links = dict(links_for("Kafka message schema, Apache Kafka source, A book", ("JoinGroup",)))
    schema, source, book = links.values()
    assert schema is not None and schema.endswith("/common/message/JoinGroupRequest.json")
    assert source is not None and source.endswith("/GroupCoordinatorShard.java") and book is None
    (source,) = dict(links_for("Apache Kafka source", ())).values()
    assert source is not None and source.endswith("/GroupCoordinatorShard.java")


def test_every_requirement_can_be_read_up_in_one_click() -> None:
    assert dict(links_for("A book", ())) == {"A book": None}
    exact = re.compile(r"#L\d+$|\.json$|cwiki|/browse/|javadoc|redpanda|kfake")
    for specification in (CLASSIC, CLASSIC_CLIENT):
        for id in specification.requirements:
            links = dict(specification.links_of(id))
            assert any(exact.search(address or "") for address in links.values()) or links.keys() <= WITHOUT_ADDRESS, id


def test_a_class_that_a_requirement_names_is_opened_at_the_method_that_shows_it() -> None:
    (link,) = links_for("GroupMetadataManagerTest", (), "SYNC-04")
    assert link[0] == "GroupMetadataManagerTest.testSyncGroupFromIllegalGeneration"
    assert link[1] is not None and link[1].endswith("/GroupMetadataManagerTest.java#L6989")
    (other,) = links_for("GroupMetadataManagerTest", (), "SYNC-99")
    assert other[1] is not None and other[1].endswith("/GroupMetadataManagerTest.java")


def test_methods_belong_to_requirements() -> None:
    methods = list(read_methods())
    assert len({(method.path, method.line) for method in methods}) == len(methods) > 200
    ids = [id for method in methods for id in method.requirements]
    assert len(set(ids)) == len(ids) and set(ids) <= {*CATALOGUE, *CLIENT_CATALOGUE}
