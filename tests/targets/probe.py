"""Raw requests that show whether a target is up; independent of the codec under test."""

import socket
import struct

METADATA, OFFSET_COMMIT, OFFSET_FETCH, FIND_COORDINATOR, JOIN_GROUP, HEARTBEAT = 3, 8, 9, 10, 11, 12
API_VERSIONS, DESCRIBE_CONFIGS, DELETE_GROUPS = 18, 32, 42
NOT_COORDINATOR, UNKNOWN_MEMBER_ID, REBALANCE_IN_PROGRESS = 16, 25, 27
BROKER_RESOURCE = 4


def send_request(port: int, api: int, body: bytes = b"", *, version: int = 0, timeout: float = 5.0) -> bytes:
    """Send one request to 127.0.0.1 and return the answer's body. Raises OSError if none comes."""
    frame = struct.pack(">hhih", api, version, 1, -1) + body
    with socket.create_connection(("127.0.0.1", port), timeout) as connection:
        connection.sendall(struct.pack(">i", len(frame)) + frame)
        with connection.makefile("rb") as response:
            size = response.read(4)
            if len(size) < 4:
                raise ConnectionError("closed without an answer")
            return response.read(struct.unpack(">i", size)[0])[4:]


def api_versions(port: int) -> dict[int, tuple[int, int]]:
    """The APIs a target advertises, with their lowest and highest versions."""
    response = send_request(port, API_VERSIONS)
    error, count = struct.unpack_from(">hi", response)
    if error:
        raise ConnectionError(f"ApiVersions v0 answered with error {error}")
    rows = (struct.unpack_from(">hhh", response, 6 + 6 * i) for i in range(count))
    return {api: (lowest, highest) for api, lowest, highest in rows}


def touch_topic(port: int, topic: str) -> None:
    """Ask for a topic's metadata (version 0), which makes the topic where brokers do that."""
    send_request(port, METADATA, struct.pack(">i", 1) + _string(topic))


def coordinator_error(port: int, group: str) -> int:
    """FindCoordinator's error code; the first such request makes a broker create __consumer_offsets."""
    error: int = struct.unpack_from(">h", send_request(port, FIND_COORDINATOR, _string(group)))[0]
    return error


def heartbeat_error(port: int, group: str) -> int:
    """Heartbeat's error code for a member that does not exist: UNKNOWN_MEMBER_ID once the partition is loaded."""
    body = _string(group) + struct.pack(">i", 1) + _string("nobody")
    error: int = struct.unpack_from(">h", send_request(port, HEARTBEAT, body))[0]
    return error


def join_error(port: int, group: str, protocols: int = 1, timeout: float = 5.0) -> int:
    """JoinGroup's error code (version 0) for a new member with this many protocols; `timeout` is in seconds."""
    offered = (_string(f"protocol-{number}") + struct.pack(">i", 0) for number in range(protocols))
    body = _string(group) + struct.pack(">i", 6000) + _string("") + _string("consumer") + struct.pack(">i", protocols)
    response = send_request(port, JOIN_GROUP, body + b"".join(offered), timeout=timeout)
    error: int = struct.unpack_from(">h", response)[0]
    return error


def delete_error(port: int, group: str) -> int:
    """DeleteGroups' error code (version 0) for one group."""
    response = send_request(port, DELETE_GROUPS, struct.pack(">i", 1) + _string(group))
    error: int = struct.unpack(">h", response[-2:])[0]
    return error


def describe_configs_error(port: int) -> int:
    """DescribeConfigs' error code (version 1) for the settings of the broker 0."""
    body = struct.pack(">ib", 1, BROKER_RESOURCE) + _string("0") + struct.pack(">ib", -1, 0)
    error: int = struct.unpack_from(">h", send_request(port, DESCRIBE_CONFIGS, body, version=1), 8)[0]
    return error


def commit_offset(port: int, group: str, topic: str, offset: int) -> int:
    """OffsetCommit's error code (version 2) for partition 0, sent by nobody's member."""
    body = _string(group) + struct.pack(">i", -1) + _string("") + struct.pack(">qi", -1, 1) + _string(topic)
    response = send_request(port, OFFSET_COMMIT, body + struct.pack(">iiqh", 1, 0, offset, -1), version=2)
    error: int = struct.unpack(">h", response[-2:])[0]
    return error


def committed_offset(port: int, group: str, topic: str) -> int:
    """The offset that OffsetFetch (version 1) tells for partition 0; -1 if there is none."""
    body = _string(group) + struct.pack(">i", 1) + _string(topic) + struct.pack(">ii", 1, 0)
    response = send_request(port, OFFSET_FETCH, body, version=1)
    offset: int = struct.unpack_from(">iq", response, 4 + 2 + len(topic) + 4)[1]
    return offset


def _string(text: str) -> bytes:
    return struct.pack(">h", len(text)) + text.encode()
