"""Reports to show, write and read back."""

from fencepost.conformance.results import Failure, Report, RequirementResult, RuleCoverage, Scope, Verdict
from fencepost.traces.verdict import FieldDifference

JOIN_29 = Failure(
    trace="failing/JOIN-29.jsonl",
    step=11,
    observed="error_code=NONE, generation_id=-1",
    allowed=("NONE, generation=1",),
    guard="the protocols differ from the stored ones",
    schedule=("A: JoinGroup v5", "A: JoinGroup v5 with the id given", "A: JoinGroup v5, the same again"),
    replay="fencepost replay failing/JOIN-29.jsonl bundled",
    replayed=True,
    title="JoinGroup response has the wrong generation_id",
    differences=(FieldDifference("generation_id", "1", "-1"),),
    rule="join.completing.same-protocols: a member asks again",
    state="Completing, generation 1, members A, B",
    wrong_step=3,
    kind="join.completing.same-protocols generation",
)
LONGER = Failure(
    trace="",
    step=40,
    observed="no answer",
    allowed=(),
    guard="",
    schedule=("one", "two", "three", "four"),
)
VIOLATED = Report(
    target={"name": "kafka://127.0.0.1:9092", "implementation": "made up 4.1", "clock": "wall"},
    seed=7,
    results=(
        RequirementResult("FIND-01", Verdict.PASS, checks=3),
        RequirementResult(
            "FIND-04", Verdict.UNSUPPORTED, note="needs a second node beside the coordinator of the group"
        ),
        RequirementResult("FIND-08", Verdict.NOT_OBSERVED),
        RequirementResult(
            "FIND-10", Verdict.UNSUPPORTED, note="needs a second node beside the coordinator of the group"
        ),
        RequirementResult("JOIN-14", Verdict.PASS, note="answered 25 where Kafka answers -1", checks=1),
        RequirementResult("JOIN-29", Verdict.FAIL, checks=2, failures=(LONGER, JOIN_29)),
        RequirementResult("JOIN-31", Verdict.KNOWN, note="declared: leaders do not rebalance", checks=1),
        RequirementResult("SYNC-10", Verdict.INCONCLUSIVE, note="could not be set up because of JOIN-29"),
    ),
    rules={
        "join.completing.same-protocols": RuleCoverage(2, ("JOIN-29",)),
        "sync.completing.follower": RuleCoverage(0, ("SYNC-10", "TIMER-04")),
    },
    schedules=12,
    events=345,
    seconds=6.75,
)
KEPT = Report(
    target={"name": "bundled"},
    seed=0,
    results=(RequirementResult("HB-05", Verdict.PASS, checks=1),),
    schedules=1,
    events=8,
    seconds=0.04,
    scope=Scope.SELECTED,
)
