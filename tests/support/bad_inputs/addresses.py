"""Texts that are no address, and addresses without a server."""

from collections.abc import Iterator

from tests.support.bad_inputs.bad_input import PASSWORD, BadInput
from tests.support.bad_inputs.samples import SAMPLES

MALFORMED = (
    "127.0.0.1",
    "127.0.0.1:",
    ":9092",
    "127.0.0.1:0",
    "127.0.0.1:65536",
    "127.0.0.1:9092/topic",
    "127.0.0.1:9092?x=1",
    "http://127.0.0.1:9092",
    "kafka:/127.0.0.1:9092",
    "kafka://",
    "kafka://127.0.0.1",
    "kafka://::1:9092",
    "kafka://[::1:9092",
    "kafka://a:1,,b:2",
    "kafka://a:1,b",
    "kafka://a b:1",
    "kafka://a:1;b:2",
    "kafka://a:\u0661",
    "bundle",
    "BUNDLED",
    "kafka://a\x1b[31m:1",
)
UNREACHABLE = {
    "refused": ("kafka://127.0.0.1:1", "127.0.0.1:1"),
    "refused, written shortly": ("127.0.0.1:1", "127.0.0.1:1"),
    "refused, with TLS": ("kafka+ssl://127.0.0.1:1", "127.0.0.1:1"),
    "several, all refused": ("kafka://127.0.0.1:1,127.0.0.1:2", "127.0.0.1:2"),
    "IPv6, refused": ("kafka://[::1]:1", "[::1]:1"),
    "no such host": ("kafka://no-such-host.invalid:9092", "no-such-host.invalid"),
    "a name that is too long": (f"kafka://{'h' * 300}:9092", "hhh"),
    "a name with an empty label": ("kafka://a..b:9092", "a..b"),
}


def bad_addresses() -> Iterator[BadInput]:
    """Bad addresses of every command that takes one."""
    trace = {"t.jsonl": SAMPLES.trace}
    for text in MALFORMED:
        named = text.encode("unicode_escape").decode() if not text.isprintable() else text
        yield BadInput(f"address of test: {text!r}", ("test", text, "--smoke"), named)
        yield BadInput(f"address of replay: {text!r}", ("replay", "t.jsonl", text), named, trace)
        yield BadInput(f"address of record: {text!r}", ("record", "--upstream", text, "-o", "new.jsonl"), named)
    for name, (text, place) in UNREACHABLE.items():
        reported = ("test", text, "--smoke", "--json", "r.json")
        yield BadInput(f"address of test: {name}", reported, place, report="r.json")
        yield BadInput(f"address of replay: {name}", ("replay", "t.jsonl", text), place, trace)
        yield BadInput(f"address of record: {name}", ("record", "--upstream", text, "-o", "new.jsonl"), place)
    for command in (("test",), ("replay", "t.jsonl"), ("record", "-o", "new.jsonl", "--upstream")):
        words = (*command, f"kafka://me:{PASSWORD}@h:1")
        yield BadInput(f"address with a password: {command[0]}", words, "password", trace)
    for text in ("9092", "127.0.0.1:x", "kafka://a:1,b:2", "127.0.0.1:-1"):
        words = ("record", "--upstream", "127.0.0.1:1", "-o", "new.jsonl", "--listen", text)
        yield BadInput(f"address to listen on: {text!r}", words, "--listen")
