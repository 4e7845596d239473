"""Two leaders of one generation on a real Kafka, driven by the run that breaks T1 on the model.

A generation is stored with its assignment. If the broker is killed before that, the number is given again.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from fencepost.model.classic.core.state import JoinRequest, JoinResponse
from fencepost.model.classic.theorems.ghost_state import ConcreteGhostState, JoinResponseSent
from fencepost.model.classic.theorems.non_theorems import coordinator_failover
from fencepost.model.classic.theorems.scripted_run import ScriptedRun
from fencepost.model.classic.theorems.statements import one_leader
from fencepost.model.errors import Error
from fencepost.model.wire.codec import decode_body, encode_body
from tests.targets import probe
from tests.targets.running import RunningTarget

VERSION = 5
"""The first version of JoinGroup with an instance id."""
GROUP = "two-leaders"
SESSION_TIMEOUT_MS = 30_000
JOIN_TIMEOUT_S = 60.0
"""Longer than any initial delay of the targets."""


@pytest.mark.kafka4
def test_kafka4_gives_the_number_of_a_lost_generation_again(kafka4: RunningTarget) -> None:
    check_two_leaders(kafka4)


@pytest.mark.kafka3
def test_kafka3_gives_the_number_of_a_lost_generation_again(kafka3: RunningTarget) -> None:
    check_two_leaders(kafka3)


def check_two_leaders(target: RunningTarget) -> None:
    """The broker answers the run as the model does, and its answers break T1."""
    run = coordinator_failover()
    assert len(run.log) <= 12
    first, second = drive(run, target)
    predicted = [one.response.generation for one in run.facts if isinstance(one, JoinResponseSent)]
    assert [first.response.generation, second.response.generation] == predicted == [1, 1]
    assert [each.response.leader == each.response.member for each in (first, second)] == [True, True]
    ids = (first.response.member, second.response.member)
    assert not one_leader.holds(ConcreteGhostState(identities=dict(zip(ids, ids, strict=True))), first, second)


def drive(run: ScriptedRun, target: RunningTarget) -> Iterator[JoinResponseSent]:
    """Do with the target what the run did with the model: its requests in order, and a kill at each fail-over."""
    requests = iter([one for one in run.facts if isinstance(one, JoinRequest)])
    for line in run.log:
        if line.endswith(": member.join"):
            request = next(requests)
            yield JoinResponseSent(request.handle, join(target.port, request))
        elif line.startswith("fail-over"):
            target.kill()
            target.start()


def join(port: int, request: JoinRequest) -> JoinResponse:
    """What the broker answers to the JoinGroup, with times that suit a real broker."""
    body = {
        "group_id": GROUP,
        "session_timeout_ms": SESSION_TIMEOUT_MS,
        "rebalance_timeout_ms": SESSION_TIMEOUT_MS,
        "member_id": request.member or "",
        "group_instance_id": request.instance,
        "protocol_type": request.protocol_type,
        "protocols": [{"name": one.name, "metadata": b""} for one in request.protocols],
    }
    response = probe.send_request(
        port, probe.JOIN_GROUP, encode_body("JoinGroupRequest", VERSION, body), version=VERSION, timeout=JOIN_TIMEOUT_S
    )
    told: Any = decode_body("JoinGroupResponse", VERSION, response).body
    error = Error(told["error_code"])
    assert error is Error.NONE
    return JoinResponse(error, told["generation_id"], leader=told["leader"], member=told["member_id"])
