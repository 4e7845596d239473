"""Network addresses: a host and a port, written host:port or kafka://host:port, with the brackets of IPv6."""

import re
from typing import TypeAlias

Address: TypeAlias = tuple[str, int]
"""Host and port; the host of IPv6 without brackets."""

URL_SCHEME = "kafka://"
_ADDRESS = re.compile(r"(?:\[([0-9A-Fa-f:.]+(?:%[\w.-]+)?)\]|([^\s:/\[\]@?#,]+)):([0-9]{1,5})")


def parse_address(text: str) -> Address | None:
    """The address that `text` writes as host:port, or None if it is not one. White space around it is ignored."""
    found = _ADDRESS.fullmatch(text.strip())
    if found is None or not 0 < int(found[3]) < 65_536:
        return None
    return (found[1] or found[2], int(found[3]))


def parse_url(text: str) -> Address | None:
    """The address that `text` writes as kafka://host:port, or None if it is not one."""
    return parse_address(text.removeprefix(URL_SCHEME)) if text.startswith(URL_SCHEME) else None


def format_address(host: str, port: int) -> str:
    """host:port, the host in brackets if it is IPv6."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def format_url(address: Address) -> str:
    """kafka://host:port of `address`."""
    return URL_SCHEME + format_address(*address)
