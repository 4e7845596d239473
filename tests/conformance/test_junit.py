from dataclasses import replace
from xml.etree import ElementTree

from fencepost.conformance.reports.junit import to_junit
from fencepost.conformance.results import RequirementResult, Verdict, describe_kit
from fencepost.conformance.specification import DEFAULT_SPECIFICATION
from tests.support.sample_reports import JOIN_29, KEPT, VIOLATED

VIOLATED_TEXT = """\
<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="fencepost kafka://127.0.0.1:9092" tests="8" failures="1" errors="1" skipped="4" time="6.750">
  <properties>
    <property name="kit.version" value="VERSION" />
    <property name="kit.catalogue" value="CATALOGUE" />
    <property name="target.name" value="kafka://127.0.0.1:9092" />
    <property name="target.implementation" value="made up 4.1" />
    <property name="target.clock" value="wall" />
    <property name="scope" value="full" />
    <property name="seed" value="7" />
  </properties>
  <testsuite name="FIND" tests="4" failures="0" errors="0" skipped="3">
    <testcase classname="fencepost.FIND" name="FIND-01 Lookup names a usable node">
      <properties>
        <property name="requirement" value="FIND-01" />
        <property name="tier" value="core" />
        <property name="source" value="consumer group protocol chapter, FindCoordinatorRequest.json" />
      </properties>
    </testcase>
    <testcase classname="fencepost.FIND" name="FIND-04 Node follows from the group id">
      <properties>
        <property name="requirement" value="FIND-04" />
        <property name="tier" value="cluster" />
        <property name="source" value="consumer group protocol chapter, GroupCoordinatorServiceTest" />
      </properties>
      <skipped message="unsupported: needs a second node beside the coordinator of the group" />
    </testcase>
    <testcase classname="fencepost.FIND" name="FIND-08 No coordinator to name">
      <properties>
        <property name="requirement" value="FIND-08" />
        <property name="tier" value="core" />
        <property name="source" value="FindCoordinatorRequest.json, KafkaApis.getCoordinator" />
      </properties>
      <skipped message="not-observed" />
    </testcase>
    <testcase classname="fencepost.FIND" name="FIND-10 Wrong node">
      <properties>
        <property name="requirement" value="FIND-10" />
        <property name="tier" value="cluster" />
        <property name="source" value="GroupCoordinatorTest" />
      </properties>
      <skipped message="unsupported: needs a second node beside the coordinator of the group" />
    </testcase>
  </testsuite>
  <testsuite name="JOIN" tests="3" failures="1" errors="0" skipped="1">
    <testcase classname="fencepost.JOIN" name="JOIN-14 Pending id with an instance id">
      <properties>
        <property name="requirement" value="JOIN-14" />
        <property name="tier" value="core" />
        <property name="source" value="GroupMetadataManagerTest" />
      </properties>
    </testcase>
    <testcase classname="fencepost.JOIN" name="JOIN-29 Matching rejoin in CompletingRebalance">
      <properties>
        <property name="requirement" value="JOIN-29" />
        <property name="tier" value="core" />
        <property name="source" value="GroupMetadataManagerTest" />
      </properties>
      <failure type="MUST" message="JoinGroup response has the wrong generation_id. \
In CompletingRebalance, a member that rejoins with identical protocols is \
answered at once with the current generation and without a rebalance; the leader gets the members again.">\
source: GroupMetadataManagerTest

JoinGroup response has the wrong generation_id
generation_id: expected 1, observed -1
model: answers NONE, since a member asks again (rule join.completing.same-protocols)
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
      <properties>
        <property name="requirement" value="JOIN-31" />
        <property name="tier" value="core" />
        <property name="source" value="GroupMetadataManagerTest, GroupCoordinatorTest" />
      </properties>
      <skipped message="known: declared: leaders do not rebalance" />
    </testcase>
  </testsuite>
  <testsuite name="SYNC" tests="1" failures="0" errors="1" skipped="0">
    <testcase classname="fencepost.SYNC" name="SYNC-10 Follower waits for the leader">
      <properties>
        <property name="requirement" value="SYNC-10" />
        <property name="tier" value="core" />
        <property name="source" value="SyncGroupRequestTest, GroupMetadataManagerTest" />
      </properties>
      <error type="inconclusive" message="could not be set up because of JOIN-29" />
    </testcase>
  </testsuite>
</testsuites>
"""

CUT_SHORT_TEXT = """\
<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="fencepost bundled" tests="2" failures="0" errors="1" skipped="0" time="0.040">
  <properties>
    <property name="kit.version" value="VERSION" />
    <property name="kit.catalogue" value="CATALOGUE" />
    <property name="target.name" value="bundled" />
    <property name="scope" value="selected" />
    <property name="seed" value="0" />
  </properties>
  <testsuite name="HB" tests="1" failures="0" errors="0" skipped="0">
    <testcase classname="fencepost.HB" name="HB-05 Heartbeat in Stable">
      <properties>
        <property name="requirement" value="HB-05" />
        <property name="tier" value="core" />
        <property name="source" value="HeartbeatRequestTest" />
      </properties>
    </testcase>
  </testsuite>
  <testsuite name="run" tests="1" failures="0" errors="1" skipped="0">
    <testcase classname="fencepost.run" name="the run is complete">
      <error type="cut-short" message="the run was cut short" />
    </testcase>
  </testsuite>
</testsuites>
"""

KIT = describe_kit(DEFAULT_SPECIFICATION)


def with_kit(text: str) -> str:
    """The text with the version and catalogue of the kit."""
    return text.replace("VERSION", KIT.version).replace("CATALOGUE", KIT.catalogue)


def test_a_report_with_every_verdict() -> None:
    assert to_junit(VIOLATED) == with_kit(VIOLATED_TEXT)


def test_a_run_that_was_cut_short_is_not_green() -> None:
    assert to_junit(replace(KEPT, cut_short=True)) == with_kit(CUT_SHORT_TEXT)


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
