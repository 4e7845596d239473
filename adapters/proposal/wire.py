"""The draft's messages on the wire: in the proposal's dialect, version 0 of SyncGroup has the draft's layout.

The draft's JoinGroup is Kafka's version 0, and so is its response to SyncGroup. From version 1 on, SyncGroup is
Kafka's: so today's clients can talk to the same server.
"""

from dataclasses import replace

from fencepost.model.wire import codec
from fencepost.model.wire.codec import API_KEYS, Body, DecodedRequest, decode_body

_CLIENT_ID = 8
"""Where the client id begins in a frame: behind key, version and correlation id."""


def decode_request(frame: bytes, max_items: int) -> DecodedRequest:
    """As `codec.decode_request`; a SyncGroup of the draft has Kafka's names of fields, and `sync_error_code`."""
    decoded = codec.decode_request(frame, max_items)
    if (decoded.key, decoded.version) != (API_KEYS["SyncGroup"], 0):
        return decoded
    length = int.from_bytes(frame[_CLIENT_ID : _CLIENT_ID + 2], signed=True)
    sent = decode_body("ProposedSyncGroupRequest", 0, frame[_CLIENT_ID + 2 + max(length, 0) :])
    body = kafka_names(sent.body) if not sent.findings else {}
    return replace(decoded, body=body, findings=sent.findings)


def kafka_names(sent: Body) -> Body:
    """The body of a SyncGroup of the draft under Kafka's names."""
    return {
        "group_id": sent["group_id"],
        "generation_id": sent["group_generation"],
        "member_id": sent["member_id"],
        "sync_error_code": sent["sync_error_code"],
        "assignments": [
            {"member_id": entry["member_id"], "assignment": entry["state"]} for entry in sent["group_state"]
        ],
    }
