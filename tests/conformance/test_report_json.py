import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from fencepost.conformance.reports.json_report import ReportError, from_json, to_json
from tests.support.sample_reports import JOIN_29, KEPT, VIOLATED

KEPT_TEXT = """\
{
  "fencepost": 2,
  "target": {
    "name": "bundled"
  },
  "seed": 0,
  "scope": "selected",
  "summary": {
    "pass": 1,
    "fail": 0,
    "known": 0,
    "unsupported": 0,
    "not-observed": 0,
    "inconclusive": 0
  },
  "causes": [],
  "requirements": [
    {
      "id": "HB-05",
      "level": "MUST",
      "title": "Heartbeat in Stable",
      "source": "HeartbeatRequestTest",
      "since": "",
      "verdict": "pass",
      "note": "",
      "causes": [],
      "checks": 1,
      "failures": []
    }
  ],
  "rules": {},
  "schedules": 1,
  "events": 8,
  "seconds": 0.04,
  "cut_short": false
}
"""

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
    }
    assert document["causes"] == [
        {
            "title": "JoinGroup response has the wrong generation_id: expected 1, observed -1",
            "requirements": ["JOIN-29"],
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


def test_a_title_from_another_release_is_accepted() -> None:
    assert from_json(KEPT_TEXT.replace("Heartbeat in Stable", "Worded otherwise")) == KEPT


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
        (put("seed", "0"), "report: 'seed' should be a whole number"),
        (put("seed", True), "report: 'seed' should be a whole number"),
        (put("seconds", "1"), "report: 'seconds' should be a number"),
        (put("seconds", float("nan")), "report: 'seconds' is not a duration"),
        (put("events", -1), "report: 'events' is negative"),
        (put("cut_short", 0), "report: 'cut_short' should be true or false"),
        (put("extra", 0), "report: unknown field 'extra'"),
        (put("requirements", {}), "report: 'requirements' should be a list"),
        (put("requirements", [0]), "requirement 1: expected an object"),
        (put("target", {}), "target: 'name' is missing"),
        (put("target/name", 1), "target: 'name' should be a string"),
        (put("summary/pass", 3), "report: the summary does not agree with the requirements"),
        (put("causes", []), "report: the causes do not agree with the requirements"),
        (put("scope", "whole"), "report: unknown scope 'whole'"),
        (
            put("requirements/5/failures/1/differences", [{}]),
            "JOIN-29 failure 2 difference 1: 'name' is missing",
        ),
        (put("requirements/0/id", "HB-99"), "requirement 1: there is no requirement 'HB-99'"),
        (put("requirements/0/verdict", "maybe"), "FIND-01: unknown verdict 'maybe'"),
        (put("requirements/0/extra", 0), "requirement 1: unknown field 'extra'"),
        (put("requirements/5/failures/0/allowed", [1]), "JOIN-29 failure 1: 'allowed' should hold strings"),
        (put("requirements/5/failures/1/replayed", "no"), "JOIN-29 failure 2: 'replayed' should be true or false"),
        (
            put("rules/join.completing.same-protocols/seen", None),
            "rule 'join.completing.same-protocols': 'seen' should be a whole number",
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
    with pytest.raises(ReportError, match=r"^report: 'events' is missing$"):
        from_json(json.dumps(document))


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, "{]"])
def test_text_that_is_not_json(text: str) -> None:
    with pytest.raises(ReportError, match=r"^not JSON: [^\n]+$"):
        from_json(text)


@pytest.mark.parametrize("text", ["[]", "1", "null", "{}"])
def test_json_that_is_not_a_report(text: str) -> None:
    with pytest.raises(ReportError, match=r"^not a Fencepost report of version 2$"):
        from_json(text)
