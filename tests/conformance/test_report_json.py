import json
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from fencepost import Report, judge, run
from fencepost.adapters.in_process import InProcessTarget
from fencepost.conformance.reports import json_report
from fencepost.conformance.reports.json_report import ReportError, from_json, report_schema, to_json
from fencepost.conformance.results import describe_kit
from fencepost.conformance.run.bundled import BUNDLED_SETTINGS
from fencepost.conformance.specification import DEFAULT_SPECIFICATION
from fencepost.traces.verdict import violations_in
from tests.support.faulty_coordinators import FORGIVING
from tests.support.sample_reports import JOIN_29, KEPT, VIOLATED

KEPT_FORM = """\
{
  "fencepost": 2,
  "kit": {
    "version": "VERSION",
    "requirements": REQUIREMENTS,
    "catalogue": "CATALOGUE"
  },
  "subject": "coordinator",
  "target": {
    "name": "bundled"
  },
  "outcome": {
    "exit": 0,
    "headline": "NO VIOLATION: 1 of 1 requirement checked (selected), none violated.",
    "scope": "selected",
    "checked": 1,
    "verdicts": {
      "pass": 1,
      "fail": 0,
      "known": 0,
      "unsupported": 0,
      "not-observed": 0,
      "inconclusive": 0
    }
  },
  "tiers": {
    "core": {
      "pass": 1
    }
  },
  "causes": [],
  "requirements": [
    {
      "id": "HB-05",
      "level": "MUST",
      "tier": "core",
      "needs": [],
      "title": "Heartbeat in Stable",
      "sentence": "In Stable a Heartbeat of a member succeeds.",
      "source": "HeartbeatRequestTest",
      "links": {
        "HeartbeatRequestTest.testHeartbeat": "https://github.com/apache/kafka/blob/3.8.0/core/src/test/scala/unit/\
kafka/server/HeartbeatRequestTest.scala#L58"
      },
      "since": "",
      "verdict": "pass",
      "note": "",
      "causes": [],
      "checks": 1,
      "failures": []
    }
  ],
  "unclassified": [],
  "idle_findings": [],
  "undecided": [],
  "seed": 0,
  "schedules": 1,
  "events": 8,
  "seconds": 0.04,
  "cut_short": false,
  "rules": {}
}
"""

KIT = describe_kit(DEFAULT_SPECIFICATION)
KEPT_TEXT = (
    KEPT_FORM.replace("VERSION", KIT.version)
    .replace("REQUIREMENTS", str(KIT.requirements))
    .replace("CATALOGUE", KIT.catalogue)
)
SCHEMA = Path(json_report.__file__).with_name("report-2.schema.json")
UNCLASSIFIED = replace(KEPT, unclassified=(JOIN_29,))


def test_the_text_is_stable() -> None:
    assert to_json(KEPT) == KEPT_TEXT


def test_failures_and_rules_are_written_by_their_contract_names() -> None:
    document = json.loads(to_json(VIOLATED))
    assert document["requirements"][5]["failures"][1] == {
        "trace": "failing/JOIN-29.jsonl",
        "step": 11,
        "observed": "error_code=NONE, generation_id=-1",
        "allowed": ["NONE, generation=1"],
        "guard": "the protocols differ from the stored ones",
        "schedule": ["A: JoinGroup v5", "A: JoinGroup v5 with the id given", "A: JoinGroup v5, the same again"],
        "replay": "fencepost replay failing/JOIN-29.jsonl bundled",
        "replayed": True,
        "title": "JoinGroup response has the wrong generation_id",
        "differences": [{"name": "generation_id", "expected": "1", "observed": "-1", "place": ""}],
        "rule": "join.completing.same-protocols: a member asks again",
        "state": "Completing, generation 1, members A, B",
        "wrong_step": 3,
        "kind": "join.completing.same-protocols generation",
        "excerpt": "",
    }
    assert document["causes"] == [
        {
            "title": "JoinGroup response has the wrong generation_id: expected 1, observed -1",
            "requirements": ["JOIN-29"],
            "harm": "wrong value",
        }
    ]
    assert document["rules"] == {
        "join.completing.same-protocols": {"seen": 2, "requirements": ["JOIN-29"]},
        "sync.completing.follower": {"seen": 0, "requirements": ["SYNC-10", "TIMER-04"]},
    }


@pytest.mark.parametrize("report", [KEPT, VIOLATED, replace(VIOLATED, cut_short=True), UNCLASSIFIED])
def test_what_was_written_is_read_back(report: Any) -> None:
    assert from_json(to_json(report)) == report


def test_any_characters_survive() -> None:
    report = replace(KEPT, target={"name": "b\u00fcndel \x00 \ud800 \N{SNOWMAN}"})
    assert from_json(to_json(report).encode("utf-8").decode("utf-8")) == report


def test_the_form_of_a_report_is_that_of_its_schema() -> None:
    validator = Draft202012Validator(json.loads(report_schema()))
    Draft202012Validator.check_schema(validator.schema)
    for report in (KEPT, VIOLATED, UNCLASSIFIED, run_bundled()):
        assert list(validator.iter_errors(json.loads(to_json(report)))) == []
    document = json.loads(KEPT_TEXT)
    for change in (put("events", -1), put("extra", 0), put("outcome/exit", 4), put("target", {"name": 1})):
        changed = deepcopy(document)
        change(changed)
        assert not validator.is_valid(changed)


def test_the_published_schema_is_that_of_the_classes() -> None:
    """`python -m tests.conformance.test_report_json` writes it."""
    assert SCHEMA.read_text(encoding="ascii") == report_schema()


def run_bundled() -> Report:
    """A report with provenance, facts, remarks and coverage."""
    return run("bundled", only=["COMMIT-1?", "HB-05"], schedules=2)


def test_a_report_tells_where_it_comes_from(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1767225600")
    monkeypatch.setenv("CI_JOB_URL", "https://ci.example/7")
    monkeypatch.setenv("CI_COMMIT_SHA", "5ab1e0f")
    monkeypatch.delenv("GITHUB_RUN_ID", raising=False)
    profile = tmp_path / "p.toml"
    profile.write_text('[about]\nname = "acme"\nversion = "1.4"\n[known]\nHB-09 = "issue 3"\n')
    document = json.loads(to_json(run("bundled", only=["HB-05"], seed=4, profile=profile)))
    provenance = document["provenance"]
    assert (provenance["started"], provenance["named_by"]) == ("2026-01-01T00:00:00Z", "profile")
    assert (provenance["machine"]["ci"], provenance["machine"]["commit"]) == ("https://ci.example/7", "5ab1e0f")
    assert provenance["about"] == {"name": "acme", "version": "1.4"}
    assert provenance["profile"]["known"] == {"HB-09": "issue 3"}
    command = ["fencepost", "test", "bundled", "--seed", "4", "--profile", str(profile), "--only", "HB-05"]
    assert (provenance["plan"]["seed"], provenance["plan"]["command"]) == (4, command)
    assert (document["target"]["name"], document["target"]["version"]) == ("acme", "1.4")


def test_equal_runs_give_equal_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1767225600")
    one, other = (replace(run_bundled(), seconds=0.0) for _ in range(2))
    assert to_json(one) == to_json(other)


def test_the_shortest_failure_of_a_requirement_brings_a_trace_that_shows_it(tmp_path: Path) -> None:
    target = InProcessTarget(BUNDLED_SETTINGS, make_coordinator=FORGIVING)
    found = run(target, only=["HB-04", "HB-05"]).result("HB-04")
    shortest, *others = found.failures_by_length()
    assert not any(each.excerpt for each in others)
    path = tmp_path / "excerpt.jsonl"
    path.write_text(shortest.excerpt)
    assert "HB-04" in {each.requirement for each in violations_in(judge(path))}


def test_a_report_of_another_release_may_word_things_otherwise() -> None:
    other = KEPT_TEXT.replace(KIT.catalogue, "0" * 64).replace("Heartbeat in Stable", "Worded otherwise")
    read = from_json(other)
    assert read.kit == replace(KIT, catalogue="0" * 64)
    assert replace(read, kit=None) == KEPT
    assert json.loads(to_json(read))["kit"]["catalogue"] == "0" * 64


def put(path: str, value: object) -> Callable[[Any], None]:
    *outer, last = path.split("/")

    def change(document: Any) -> None:
        for name in outer:
            document = document[int(name)] if isinstance(document, list) else document[name]
        document[last] = value

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (put("fencepost", 1), "not a Fencepost report of version 2"),
        (put("fencepost", True), "not a Fencepost report of version 2"),
        (put("seed", "0"), "seed should be a whole number"),
        (put("seed", True), "seed should be a whole number"),
        (put("seconds", "1"), "seconds should be a number"),
        (put("seconds", float("nan")), "seconds should be finite"),
        (put("events", -1), "events is below 0"),
        (put("cut_short", 0), "cut_short should be true or false"),
        (put("extra", 0), "extra is no field of a report"),
        (put("kit", []), "kit should be an object"),
        (put("requirements", {}), "requirements should be a list"),
        (put("requirements", [0]), "requirements[0] should be an object"),
        (put("target", {}), "target.name is missing"),
        (put("target/name", 1), "target.name should be a string"),
        (put("outcome/exit", 4), "outcome.exit should be 0 or 1 or 2 or 3"),
        (put("outcome/exit", 0), "outcome: does not agree with the rest of the report"),
        (put("outcome/verdicts/pass", 3), "outcome: does not agree with the rest of the report"),
        (put("outcome/headline", "CONFORMANT"), "outcome: does not agree with the rest of the report"),
        (put("tiers", {}), "tiers: does not agree with the rest of the report"),
        (put("causes", []), "causes: does not agree with the rest of the report"),
        (put("outcome/scope", "whole"), "outcome.scope should be one of full, selected, smoke, traces"),
        (
            put("requirements/5/failures/1/differences", [{}]),
            "requirements[5].failures[1].differences[0].name is missing",
        ),
        (put("requirements/0/id", "HB-99"), "requirements[0].id: there is no requirement 'HB-99'"),
        (put("requirements/0/id", "FIND-04"), "requirements[1].id: FIND-04 is there twice"),
        (put("requirements/0/title", "Anything"), "requirements[0]: FIND-01 is not worded as in the catalogue"),
        (
            put("requirements/0/verdict", "maybe"),
            "requirements[0].verdict should be one of pass, fail, known, unsupported, not-observed, inconclusive",
        ),
        (put("requirements/0/extra", 0), "requirements[0].extra is no field of a report"),
        (put("requirements/5/failures/0/allowed", [1]), "requirements[5].failures[0].allowed[0] should be a string"),
        (
            put("requirements/5/failures/1/replayed", "no"),
            "requirements[5].failures[1].replayed should be true or false",
        ),
        (
            put("rules/join.completing.same-protocols/seen", None),
            "rules.join.completing.same-protocols.seen should be a whole number",
        ),
    ],
)
def test_reading_is_strict(change: Callable[[Any], None], message: str) -> None:
    document = json.loads(to_json(VIOLATED))
    change(document)
    with pytest.raises(ReportError) as caught:
        from_json(json.dumps(document))
    assert str(caught.value) == message


def test_a_missing_field_is_named() -> None:
    document = json.loads(KEPT_TEXT)
    del document["events"]
    with pytest.raises(ReportError, match=r"^events is missing$"):
        from_json(json.dumps(document))


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, "{]"])
def test_text_that_is_not_json(text: str) -> None:
    with pytest.raises(ReportError, match=r"^not JSON: [^\n]+$"):
        from_json(text)


@pytest.mark.parametrize("text", ["[]", "1", "null", "{}"])
def test_json_that_is_not_a_report(text: str) -> None:
    with pytest.raises(ReportError, match=r"^not a Fencepost report of version 2$"):
        from_json(text)


if __name__ == "__main__":
    SCHEMA.write_text(report_schema(), encoding="ascii")
