"""The errors of responses after which a client waits before it repeats a request."""

from typing import Any

import pytest

from fencepost.model.errors import Error
from fencepost.traces.classic.client.joining import error_in
from fencepost.traces.events import Event, Kind

ERROR = int(Error.UNSTABLE_OFFSET_COMMIT)
TOPICS = [{"name": "t", "partitions": [{"error_code": 0}, {"error_code": ERROR}]}]


@pytest.mark.parametrize(
    "body",
    [
        {"error_code": ERROR},
        {"topics": TOPICS},
        {"error_code": 0, "topics": TOPICS},
        {"groups": [{"group_id": "g", "error_code": ERROR, "topics": []}]},
        {"groups": [{"group_id": "g", "error_code": 0, "topics": TOPICS}]},
        {"coordinators": [{"key": "g", "error_code": ERROR}]},
    ],
)
def test_an_error_is_seen_wherever_a_version_of_a_response_has_it(body: dict[str, Any]) -> None:
    response = Event(sequence=1, time=0, connection=1, member="A", kind=Kind.RESPONSE, api="any", version=0, body=body)
    assert error_in(response) == ERROR


def test_a_response_without_an_error_has_none() -> None:
    body = {"error_code": 0, "topics": [{"name": "t", "partitions": [{"error_code": 0}]}]}
    response = Event(sequence=1, time=0, connection=1, member="A", kind=Kind.RESPONSE, api="any", version=0, body=body)
    assert error_in(response) == 0
