"""Thresholds of clients: held-out faults and systematic mutants of the reference client."""

import hashlib
import json
import os
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from functools import cache, partial
from pathlib import Path
from random import Random

from fencepost import adapters, conformance, model, traces
from fencepost.conformance.classic.zoo.client_stand import ClientFault, MutantOutcome, hunt_mutant
from fencepost.conformance.classic.zoo.clients import CLIENT_BUGS
from fencepost.conformance.classic.zoo.zoo import member_mutants
from fencepost.conformance.zoo.fault import Side
from fencepost.conformance.zoo.hunt import HuntResult, HuntTask
from fencepost.conformance.zoo.registry import hunt, hunts_for
from fencepost.conformance.zoo.strategies import SCENARIOS
from tests.acceptance.framework import Check, Figure, at_least, without_threshold
from tests.acceptance.heldout_clients import CLIENT_FAULTS

SEED = 20_261_130
"""Of the schedules on held-out faults, and of the draw of mutants."""
SEEN = Path(__file__).parents[1] / "seen_mutants.txt"
"""The mutants of earlier draws, a line each: checks were written after their survivors were read."""
HUNT_SECONDS = 10.0
DRAWN = 120
MUTANT_SCHEDULES = 40
"""For each kind of client."""
MIN_SHARE = 95.0
OUTCOMES_VARIABLE = "FENCEPOST_OUTCOMES"
"""The folder in which the outcomes of mutants are kept, by the kit; those that are there are not hunted again."""
PARTS = (Side.MEMBER, Side.ASSIGNOR, Side.FETCHER)
RULE = "only the name of the rule is another one"
CLOSED = "a driver ends with close: nothing is asked of a closed client"
EXPLAINED: dict[str, str] = {
    "heartbeats.ask_heartbeat: ": "no application asks for a heartbeat: KIP-41 rejected the method",
    "heartbeats.send_heartbeat_in_poll: always: ": "sends nothing in a poll, as all clients since KIP-62",
    "leaving.restart: ": "the kit starts a new process in the place of this",
    "member.restart: ": "the kit starts a new process in the place of this",
    "leaving.close: never: client.closing is not ": CLOSED,
    "leaving.subscribe: never: client.closing is not ": CLOSED,
    "leaving.unsubscribe: never: client.closing is not ": CLOSED,
    "polling.poll: never: client.closing is not ": CLOSED,
    "polling.poll: never: client.callback is not None": "no driver polls in a callback",
    "dispatch.take_listener: never: callback is None": "no driver returns from a callback that was not called",
    "commits.judge_commit: comparison: error == Error.FENCED_INSTANCE_ID": RULE,
    "joining.sync_rule: ": RULE,
    "joining.refuse_exchange: always: error == Error.FENCED_INSTANCE_ID": RULE,
    "joining.refuse_exchange: always: fenced": RULE,
    "joining.refuse_exchange: never: fenced": RULE,
    "commits.send_commit: never: client.is_manual": RULE,
    "commits.send_commit: comparison: local is Problem.COMMIT_FAILED": RULE,
    "positions.on_offsets: never: not asked": RULE,
    "commits.error_in: never: response.error": "the response to OffsetCommit has no error but those of partitions",
    "commits.judge_commit: never: error == Error.FENCED_INSTANCE_ID": RULE,
    "heartbeats.on_heartbeat_response: always: error == Error.NONE": RULE,
    "commits.is_revoking: always: ": "what is revoked is no more assigned once another callback runs",
    "member.join: never: ": "it is asked only of a member that has to join, and waits for nothing",
    "member.on_join_response: never: or_(handle == 0": "a response that nothing waits for does not come so far",
    "member.disconnect: always: ": "it is asked only in an exchange, and then the next poll joins anyway",
    "member.disconnect: comparison: ": "the next poll joins anyway, as long as an exchange is under way",
    "commits.judge_commit: never: client.member.state == ": "a driver tells failures in words of its own",
    "dispatch.take_response: never: isinstance(given.response, LeaveResponse)": RULE,
    "joining.reset_preparation: comparison: ": "nothing is left to prepare once the membership is reset",
    "member.claimed_partitions: never: ": "the assignor withholds what others claim already",
    "member.heartbeat: never: or_(member.state == MemberState.UNJOINED": "the worker is idle in these states",
    "commits.commit_deadline: never: purpose is ": "the commit before a rebalance is given up by another clock",
    "dispatch.give_up_request: never: request not in ": "what is lost already is lost once more",
    "dispatch.take_response: always: sent.request is not None": "a heartbeat without a response has its request",
    "completion.install_assignment: always: client.completion is not None": "an assertion that holds",
    "joining.is_cooperative: never: ": "the assignor withholds what others claim already",
    "joining.plan_assignment: always: response.leader ": "a follower is told of no members to plan for",
    "joining.user_data_of: comparison: client.member.owned_in < 0": "generations begin at 1",
    "leaving.continue_closing: never: last": "a commit that the client has closed over is asked for no more",
    "lookup.lose_coordinator: always: commit.handle": "a commit that waits has another backoff",
    "settings.ClientSettings.__post_init__: never: ": "the settings of the kit are usable",
    "commits.send_commit: never: not offsets": "a commit that may be sent has offsets that the member owns",
    "commits.send_commit: always: row[0] in partitions": "a commit has offsets that the member owns",
    "commits.judge_commit: never: error in THROWN_OUT": "the failure has another name, and lost partitions come first",
    "commits.judge_commit: never: client.is_manual": "a driver tells failures in words of its own",
    "commits.judge_commit: never: preparing": "a driver tells failures in words of its own",
    "commits.local_failure: always: is_rebalancing": "a driver tells failures in words of its own",
    "commits.send_commit: never: local is Problem.COMMIT_FAILED": RULE,
    "commits.send_waiting: never: client.coordinator is None": "send_commit looks for the coordinator too",
    "commits.offsets_to_commit: always: wanted is None": "no driver commits some partitions alone",
    "commits.on_commit_response: always: commit.request is not None": "an assertion that holds",
    "completion.complete_rebalance: always: synced is not None": "an assertion that holds",
    "completion.call_listener: comparison: kind is CallbackKind.LOST": "the driver maps lost to revoked, not the model",
    "completion.call_listener: never: kind is CallbackKind.LOST": "the driver maps lost to revoked, not the model",
    "heartbeats.send_heartbeat_in_poll: ": "sends nothing in a poll, as all clients since KIP-62",
    "leaving.leave_after_callback: always: not client.is_manual": "a client without a group has nothing to leave, and "
    "those of the kit leave on closing",
    "member.commit: always: any_(partitions)": "a commit without offsets ends before that",
    "joining.handle_join_error: never: rule != 'member.join.refused'": "nothing is left to prepare once the membership "
    "is reset",
    "joining.reset_preparation: never: ": "it is asked only where the membership was reset",
    "positions.return_records: never: position is None": "the fetcher hands over such records alone",
    "dispatch.give_up_request: never: request.kind is SentKind.FIND": "the connection ends after the same time, and "
    "what waits on it fails",
}
"""How the names begin of mutants that cannot be told apart from outside, and why."""


ALLOWED: dict[str, str] = {
    "positions.on_offsets: always: uncommitted": "a ListOffsets without partitions",
    "polling.find_if_needed: always: ": "a lookup that nothing needs",
    "commits.commit_given_up: always: not client.settings.auto_commit": "no second commit, as the Java client",
    "lookup.lose_coordinator: always: request.kind is SentKind.FETCH_OFFSETS": "offsets are asked for once more",
    "lookup.lose_coordinator: always: position.asked in asked": "offsets are asked for once more",
    "polling.poll: never: given.timeout": "what follows on a response waits for the next poll",
    "dispatch.let_time_pass: never: context.now >= request.deadline": "the silent connection ends, and one request is "
    "repeated at once",
    "commits.give_up_commit_before_rebalance: comparison: commit.number == ": "such a commit ends with its connection",
    "dispatch.let_time_pass: never: commit.handle and ": "a commit ends with its connection, after the request timeout",
    "dispatch.give_up_request: never: request.kind is SentKind.LIST_OFFSETS": "one lookup more",
    "preparation.notice_changes: never: client.member.rejoins": "another reason in JoinGroup",
    "commits.give_up_commit_before_rebalance: comparison: context.now < ": "a millisecond later",
    "commits.offsets_to_commit: comparison: one.partition in ": "other partitions in a commit that the Java client "
    "does not send at all",
    "dispatch.let_time_pass: comparison: context.now >= commit.deadline": "a millisecond later",
    "joining.on_join_response: comparison: response.error == Error.NONE": "the error is told one request later",
    "joining.subscription_of: always: has_generation(client)": "a generation beside nothing that is owned",
    "leaving.leave_after_callback: always: is_closing": "another reason in LeaveGroup",
    "leaving.subscribe: always: given.pattern is None": "a pattern is matched when Metadata comes next",
    "commits.send_waiting: never: client.coordinator is None": "an asynchronous commit waits longer for a coordinator",
    "heartbeats.on_heartbeat_response: never: step.rule == 'member.heartbeat.rebalance'": "another reason in JoinGroup",
    "leaving.continue_closing: comparison: context.now < ": "a millisecond later",
    "lookup.find_coordinator: comparison: context.now < ": "a millisecond later",
    "positions.fetch_offsets: comparison: context.now < ": "a millisecond later",
    "lookup.lose_coordinator: always: exchange": "a backoff more before JoinGroup",
    "leaving.on_leave_callback: never: not raised": "unsubscribing and closing fail, and do everything",
    "commits.send_waiting: comparison: context.now >= ": "a millisecond later",
    "commits.commit_periodically: comparison: context.now < client.clocks.auto_commit -> context.now <= ": "a "
    "millisecond later",
    "joining.send_join: comparison: context.now < client.clocks.join_retry -> context.now <= ": "a millisecond later",
    "heartbeats.work: comparison: context.now >= client.clocks.poll -> context.now > ": "a millisecond later",
    "heartbeats.work: comparison: context.now >= client.clocks.session -> context.now > ": "a millisecond later",
    "dispatch.let_time_pass: comparison: context.now >= request.deadline -> context.now > ": "a millisecond later",
    "lookup.lose_coordinator: always: request.kind in (SentKind.JOIN": "a backoff more before JoinGroup",
    "dispatch.give_up_request: comparison: request not in ": "the silent connection ends after the same time",
    "heartbeats.work: never: client.is_manual or client.closing": "heartbeats go on while the client closes",
    "commits.start_commit: never: not offsets": "a commit of nothing waits for the coordinator",
    "commits.give_up_commit_before_rebalance: always: commit.number": "another commit that has no response for so long "
    "is reported as failed",
    "commits.error_in: always: error != Error.TOPIC_AUTHORIZATION_FAILED": "another one of several errors is told",
    "commits.error_in: comparison: error != Error.TOPIC_AUTHORIZATION_FAILED": "another one of several errors is told",
}
"""How the names begin of mutants that do something else which no sentence forbids, and what."""


def hunt_fault(fault: ClientFault, first: str = "") -> HuntResult:
    """Hunt a fault by each strategy in turn, the plainest first or the one named, until one finds it."""
    for strategy in sorted(hunts_for(fault).strategies, key=lambda each: each != first):
        result = hunt(HuntTask(fault.id, strategy, SEED, HUNT_SECONDS, shrink=1.0), fault)
        if result.is_found:
            break
    return result


def check_zoo(folder: Path) -> Iterator[Figure]:
    """Each bug of the zoo that is put back, in one sitting."""
    figures = []
    for figure in hunt_faults(CLIENT_BUGS.values(), SCENARIOS):
        figures.append(figure)
        yield figure
    hunted, found, _ = figures[-3:]
    yield at_least("percent found", round(100 * int(found.value) / int(hunted.value), 1), MIN_SHARE)


def check_heldout(side: Side, folder: Path) -> Iterator[Figure]:
    """Each held-out fault of a side."""
    yield from hunt_faults(fault for fault in CLIENT_FAULTS.values() if fault.subject is side)


def hunt_faults(faults: Iterable[ClientFault], first: str = "") -> Iterator[Figure]:
    """Each fault with what found it, and how many were found; `first` names the strategy that is tried first."""
    found = Counter[str]()
    for fault in faults:
        number, begun = fault.id, time.process_time()
        result = hunt_fault(fault, first)
        how = f"{result.requirement} by {result.task.strategy}" if result.is_found else "not found"
        is_own = result.requirement in fault.breaks
        found["found"] += result.is_found
        found["own"] += is_own
        took = time.process_time() - begun
        print(f"{number}: {how}, {took:.1f} s", flush=True)
        yield without_threshold(f"{number}, {fault.sentence}", how)
        found["hunted"] += 1
    yield without_threshold("faults", found["hunted"])
    yield without_threshold("found", found["found"])
    yield without_threshold("of these, by a requirement that forbids them", found["own"])


def drawn_mutants() -> list[str]:
    """The mutants that are hunted, none of an earlier draw, in the order of this one; FENCEPOST_CLIENT_MUTANTS is how
    many of them."""
    names = sorted(member_mutants().keys() - set(SEEN.read_text().splitlines()))
    return Random(SEED).sample(names, DRAWN)[: int(os.environ.get("FENCEPOST_CLIENT_MUTANTS", DRAWN))]


def reason_in(reasons: Mapping[str, str], name: str) -> str:
    """The reason for a mutant, "" if there is none."""
    return next((reason for start, reason in reasons.items() if name.startswith(start)), "")


@cache
def identify_kit() -> str:
    """A digest of the sources by which mutants are made and found."""
    digest = hashlib.sha256()
    for storey in (model, traces, adapters, conformance):
        for file in sorted(Path(storey.__path__[0]).rglob("*.py")):
            digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def outcome_file(folder: Path, name: str) -> Path:
    """Where the outcome of a mutant is kept that was hunted by this kit."""
    return folder / identify_kit() / f"{hashlib.sha256(name.encode()).hexdigest()[:16]}.json"


def hunt_or_read(name: str) -> MutantOutcome:
    """The outcome of a mutant: as it was kept, or hunted and kept."""
    kept = os.environ.get(OUTCOMES_VARIABLE)
    file = outcome_file(Path(kept), name) if kept else None
    if file is not None and file.exists():
        return MutantOutcome(**json.loads(file.read_text()))
    outcome = hunt_mutant(member_mutants()[name], SEED, MUTANT_SCHEDULES)
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(asdict(outcome)))
    return outcome


def check_mutants(folder: Path) -> Iterator[Figure]:
    """Each drawn mutant: what found it, or whether it does anything else than the shipped client."""
    kinds = Counter[str]()
    for name in drawn_mutants():
        outcome = hunt_or_read(name)
        explained, allowed = reason_in(EXPLAINED, name), reason_in(ALLOWED, name)
        kind = "explained" if explained else "allowed" if allowed else "open" if outcome.differs else "the same"
        kind = "found" if outcome.found else kind
        kinds[kind] += 1
        what = outcome.found or explained or (f"allowed: {allowed}" if allowed else kind)
        print(f"{name}: {what}, {outcome.seconds:.1f} s", flush=True)
        yield without_threshold(name, what)
    different = kinds.total() - kinds["explained"]
    forbidden = different - kinds["allowed"]
    yield without_threshold("mutants drawn and hunted", kinds.total())
    yield without_threshold("explained: they cannot be told apart", kinds["explained"])
    yield without_threshold("allowed: they do something else that no sentence forbids", kinds["allowed"])
    yield without_threshold("not found, and not seen to do anything else", kinds["the same"])
    yield without_threshold("not found, and seen to do something else", kinds["open"])
    yield without_threshold("percent found of those not explained", round(100 * kinds["found"] / max(different, 1), 1))
    yield at_least("percent found of those forbidden", round(100 * kinds["found"] / max(forbidden, 1), 1), MIN_SHARE)


CHECKS = (
    Check("zoo", f"at least {MIN_SHARE:g} % of the bugs of the zoo of clients, in one sitting", check_zoo),
    *(Check(f"heldout-{side}s", f"held-out faults of {side}s", partial(check_heldout, side)) for side in PARTS),
    Check("mutants", f"at least {MIN_SHARE:g} % of the mutants that can be told apart", check_mutants),
)
