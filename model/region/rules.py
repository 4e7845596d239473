"""The rules by which operators, bean and region act: one row for each branch of the handlers."""

from collections.abc import Mapping
from types import MappingProxyType

from fencepost.model.catalogue.specification import Rule, Specification
from fencepost.model.region.requirements import REGION_CATALOGUE


def row(name: str, guard: str, requirements: str = "", **fields: str) -> Rule:
    """A row of the table; requirements are given by their numbers, also those about one field of a response."""
    named = {field: f"REGION-{number}" for field, number in fields.items()}
    return Rule(name, "", None, guard, tuple(f"REGION-{number}" for number in requirements.split()), named)


_GROUP = (
    row("client.joined", "the client holds nothing, and joins", "04"),
    row("revoke.ignored", "nothing was fetched since subscription or reset", "12"),
    row("revoke.pending", "a reset is waited for", "14"),
    row(
        "revoke.requests-reset",
        "records were fetched; repaired, also an assignment by a map that is old",
        "13 15 50",
        seeks="45",
        offsets="17",
    ),
    row("revoke.cooperative", "the assignor is cooperative, as documented", "51"),
    row(
        "assign.sought",
        "the operator is SUBSCRIBED or RESET_COMPLETE",
        "17 18 20 21 22 45 46",
        seeks="18",
        asks="12",
        partitions="22",
        topics="22",
    ),
    row("assign.pending", "a reset is waited for", "16 19", offsets="17", seeks="19"),
    row("assign.no-rule", "records were fetched and nothing was revoked, as documented", "51"),
    row("assign.added", "a cooperative assignor names new partitions alone, as documented", "17 51"),
    row("assign.kept", "a cooperative assignor names no new partition, as documented", "51"),
    row("operator.relaunched", "the PE was down", "04"),
    row("operator.missed", "the session of a dead process's member ends"),
    row("operator.expelled", "Kafka ends the membership of a live operator", "32"),
)
_THREADS = (
    row("poll.queued", "the queue has room, and no reset is waited for", "07 08 09", pauses="07", queue="08"),
    row("poll.dropped", "a reset is waited for", "14"),
    row("process.taken", "the queue is not empty; repaired, with a permit", "10"),
    row("process.submitted", "the operator has a permit", "10 11 47 48", offsets="11", tuple="10"),
    row("process.dropped", "the partition is assigned no longer, or a reset is waited for", "42", offsets="17"),
)
_CHECKPOINTS = (
    row("region.drains", "the region runs, and every operator has resumed", "23"),
    row(
        "drain.drained",
        "nothing is in hand, and the commit succeeds",
        "23 24 25 27",
        buffer="24",
        commit="25",
        drains="27",
        queue="24",
    ),
    row("drain.commit-failed", "the commit fails", "26"),
    row("drain.commit-logged", "the commit fails, as releases of the toolkit have it", "26"),
    row("checkpoint.written", "others have yet to write", "28", names="29"),
    row("checkpoint.refused", "the operator waits for a reset, lacks an offset or is a member no longer", "30 32"),
    row("checkpoint.complete", "every other operator has written", "29 31 47 48"),
    row("checkpoint.resumed", "the checkpoint is complete", "24 40", queue="24"),
)
_RESETS = (
    row("region.resets", "a reset was requested, or a PE has failed", "15 39 50"),
    row(
        "reset.initial",
        "there is no complete checkpoint",
        "41 43 44",
        buffer="41",
        offsets="44",
        polling="44",
        queue="41",
        seeks="43",
        state="44",
    ),
    row(
        "reset.merged",
        "the notification of the checkpoint has come",
        "35 36 41 44",
        buffer="41",
        done="33",
        offsets="44",
        polling="44",
        queue="41",
        seeks="35",
        state="44",
    ),
    row("bean.created", "the job control plane has started", "02"),
    row("bean.registered", "the operator is connected", "03", refused="01", state="04", offsets="04", polling="04"),
    row("merge.waiting", "fewer than N operators have contributed", "33"),
    row("merge.complete", "N operators have contributed", "33 34 35"),
    row("merge.repeated", "the merge is complete, and a contributor comes again", "37 49"),
    row("merge.silent", "the same, as documented", "37"),
    row("merge.heard", "the notification is under way", "36"),
)
_ASKED = (
    row("job.opened", "the kit begins"),
    row("request.unfit", "the operator is down, or has nothing of what it is asked for"),
    row("operator.control-port", "the operator has a control input port", "05"),
    row("operator.start-position", "the start position is a specific offset", "06"),
    row("bean.refused", "the group is that of another region", "01"),
    row("bean.retired", "a later checkpoint is complete", "40"),
    row("poll.empty", "the poll returns nothing"),
    row("merge.late", "fewer than N operators have contributed, and the time to wait is over", "39"),
    row("poll.position-lost", "the log no longer has the offset that was sought", "52"),
    row("poll.paused", "another poll would not fit into the queue", "08", pauses="07"),
    row("process.waits", "there is no permit, or nothing to do", "10"),
)
ASKED_RULES = frozenset(rule.name for rule in _ASKED)
"""Rules about requests of a kit that change nothing in the systems that are explored."""
REGION_RULES: Mapping[str, Rule] = MappingProxyType(
    {rule.name: rule for table in (_GROUP, _THREADS, _CHECKPOINTS, _RESETS, _ASKED) for rule in table}
)
"""Every rule by name."""
REGION = Specification(
    REGION_CATALOGUE, REGION_RULES, subject="consistent region", badge="consistent region", shelf="regions"
)
"""Requirements and rules."""
BESIDE_RULES = {
    "REGION-38": "settings.merge_wait_ms",
}
"""Requirements that no rule is about, each with the function of this package that decides it."""
