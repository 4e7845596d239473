from dataclasses import replace
from xml.etree import ElementTree

from fencepost.conformance.reports.junit import to_junit
from fencepost.conformance.results import RequirementResult, Verdict
from tests.support.sample_reports import JOIN_29, KEPT, VIOLATED

VIOLATED_TEXT = """\
<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="fencepost kafka://127.0.0.1:9092" tests="8" failures="1" errors="1" skipped="4" time="6.750">
  <testsuite name="FIND" tests="4" failures="0" errors="0" skipped="3">
    <testcase classname="fencepost.FIND" name="FIND-01 Lookup names a usable node" />
    <testcase classname="fencepost.FIND" name="FIND-04 Node follows from the group id">
      <skipped message="unsupported: needs a second node beside the coordinator of the group" />
    </testcase>
    <testcase classname="fencepost.FIND" name="FIND-08 No coordinator to name">
      <skipped message="not-observed" />
    </testcase>
    <testcase classname="fencepost.FIND" name="FIND-10 Wrong node">
      <skipped message="unsupported: needs a second node beside the coordinator of the group" />
    </testcase>
  </testsuite>
  <testsuite name="JOIN" tests="3" failures="1" errors="0" skipped="1">
    <testcase classname="fencepost.JOIN" name="JOIN-14 Pending id with an instance id" />
    <testcase classname="fencepost.JOIN" name="JOIN-29 Matching rejoin in CompletingRebalance">
      <failure type="MUST" message="JoinGroup response has the wrong generation_id. \
In CompletingRebalance, a member that rejoins with identical protocols is \
answered at once with the current generation and without a rebalance; the leader gets the members again.">\
source: GroupMetadataManagerTest

JoinGroup response has the wrong generation_id
generation_id: expected 1, observed -1
false guard: the protocols differ from the stored ones
rule: join.completing.same-protocols: a member asks again
state: Completing, generation 1, members A, B
1. A: JoinGroup v5
2. A: JoinGroup v5 with the id given
3. A: JoinGroup v5, the same again   &lt;-- wrong response
replay: fencepost replay failing/JOIN-29.jsonl bundled

observed: no answer
1. one
2. two
3. three
4. four</failure>
    </testcase>
    <testcase classname="fencepost.JOIN" name="JOIN-31 Leader rejoins in Stable">
      <skipped message="known: declared: leaders do not rebalance" />
    </testcase>
  </testsuite>
  <testsuite name="SYNC" tests="1" failures="0" errors="1" skipped="0">
    <testcase classname="fencepost.SYNC" name="SYNC-10 Follower waits for the leader">
      <error type="inconclusive" message="could not be set up because of JOIN-29" />
    </testcase>
  </testsuite>
</testsuites>
"""

CUT_SHORT_TEXT = """\
<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="fencepost bundled" tests="2" failures="0" errors="1" skipped="0" time="0.040">
  <testsuite name="HB" tests="1" failures="0" errors="0" skipped="0">
    <testcase classname="fencepost.HB" name="HB-05 Heartbeat in Stable" />
  </testsuite>
  <testsuite name="run" tests="1" failures="0" errors="1" skipped="0">
    <testcase classname="fencepost.run" name="the run is complete">
      <error type="cut-short" message="the run was cut short" />
    </testcase>
  </testsuite>
</testsuites>
"""


def test_a_report_with_every_verdict() -> None:
    assert to_junit(VIOLATED) == VIOLATED_TEXT


def test_a_run_that_was_cut_short_is_not_green() -> None:
    assert to_junit(replace(KEPT, cut_short=True)) == CUT_SHORT_TEXT


def test_any_characters_give_a_document_that_can_be_parsed() -> None:
    awkward = "<&\"'>\x00\x1b\ufffe\ud800]]>\N{SNOWMAN}"
    failure = replace(JOIN_29, differences=(), observed=awkward)
    results = (
        RequirementResult("HB-05", Verdict.FAIL, failures=(failure,)),
        RequirementResult("HB-06", Verdict.INCONCLUSIVE, note=awkward),
        RequirementResult("HB-07", Verdict.UNSUPPORTED, note=awkward),
    )
    text = to_junit(replace(KEPT, target={"name": awkward}, results=results))
    root = ElementTree.fromstring(text.encode("utf-8"))
    shown = "<&\"'>\ufffd\ufffd\ufffd\ufffd]]>\N{SNOWMAN}"
    assert root.get("name") == f"fencepost {shown}"
    error = root.find(".//error")
    assert error is not None and error.get("message") == shown
    text_of_failure = root.findtext(".//failure")
    assert text_of_failure is not None and f"observed: {shown}\n" in text_of_failure
