"""Requests and responses of the coordinator, and their error codes."""

from dataclasses import dataclass

from fencepost.adapters.serve.coordination import Body, Request, Response
from fencepost.model.errors import Error

__all__ = ["Body", "Error", "JoinGroup", "Request", "Response"]


@dataclass(frozen=True, slots=True)
class JoinGroup:
    """A parsed JoinGroup request (timeouts in milliseconds, protocols in the order of preference)."""

    request: Request
    group_id: str
    member_id: str
    instance_id: str | None
    session_timeout: int
    rebalance_timeout: int
    protocol_type: str
    protocols: tuple[tuple[str, bytes], ...]

    @classmethod
    def read(cls, request: Request) -> "JoinGroup":
        """Parse the body of the request."""
        body = request.body
        session_timeout = body.get("session_timeout_ms", 0)
        return cls(
            request,
            body.get("group_id", ""),
            body.get("member_id", ""),
            body.get("group_instance_id"),
            session_timeout,
            # JOIN-42: version 0 has no rebalance timeout of its own.
            session_timeout if request.version == 0 else body.get("rebalance_timeout_ms", -1),
            body.get("protocol_type", ""),
            tuple((protocol["name"], bytes(protocol.get("metadata", b""))) for protocol in body.get("protocols", ())),
        )

    @property
    def is_static(self) -> bool:
        """Whether the request has an instance id (KIP-345)."""
        return self.instance_id is not None
