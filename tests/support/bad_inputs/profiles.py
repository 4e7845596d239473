"""Profiles with a mistake, given to every command that takes one."""

from collections.abc import Iterator

from tests.support.bad_inputs.bad_input import PASSWORD, BadInput
from tests.support.bad_inputs.samples import SAMPLES

MISTAKES: dict[str, str | bytes] = {
    "not closed": "[target",
    "not TOML": "start: x",
    "twice the same key": "[timing]\ngrace_ms = 1\ngrace_ms = 2",
    "twice the same section": "[timing]\n[timing]",
    "unknown section": "[targets]\nstart = 'x'",
    "key outside a section": "start = 'x'",
    "section that is a number": "target = 1",
    "section that is a list": "[[target]]\nstart = 'x'",
    "unknown key": "[target]\nstrat = 'x'",
    "kill alone": "[target]\nkill = 'x'",
    "command that is a list": "[target]\nstart = ['x']",
    "empty command": "[target]\nstart = ''",
    "command with an open quote": "[target]\nstart = 'a \"b'",
    "storage in words": "[target]\nstart = 'x'\nkeeps_storage = 'yes'",
    "setting in quotes": "[settings]\nmax_group_size = '6'",
    "setting below 0": "[settings]\nmax_group_size = -1",
    "setting that is a fraction": "[settings]\nmax_group_size = 6.5",
    "setting that is true": "[settings]\nmax_group_size = true",
    "setting that is not finite": "[settings]\nmax_group_size = inf",
    "setting beyond every number": "[settings]\nmax_group_size = " + "9" * 6_000,
    "setting of more than 32 bits": "[settings]\nmax_group_size = 4294967296",
    "setting by Kafka's name": "[settings]\ngroup_max_size = 6",
    "setting by Kafka's dotted name": "[settings]\ngroup.max.size = 6",
    "bounds that cross": "[settings]\nmin_session_timeout = 9\nmax_session_timeout = 1",
    "override in words": "[settings]\noverride = 'yes'",
    "no partitions": "[settings]\noffsets_partitions = 0",
    "capabilities in words": "[capabilities]\noffers = 'retention'",
    "unknown capability": "[capabilities]\noffers = ['fast']",
    "capability that follows": "[capabilities]\noffers = ['restart']",
    "capability that is a number": "[capabilities]\noffers = [1]",
    "unknown requirement": "[known]\nJOIN-999 = 'x'",
    "deviation without a reason": "[known]\nJOIN-29 = ''",
    "deviation that is true": "[known]\nJOIN-29 = true",
    "grace below 0": "[timing]\ngrace_ms = -1",
    "grace by another name": "[timing]\ngrace = 1",
    "unknown word about the target": "[about]\ncolour = 'red'",
    "name that is a number": "[about]\nname = 1",
    "secret in the profile": f"[security]\nmechanism = 'PLAIN'\nuser = 'me'\npassword = '{PASSWORD}'",
    "unknown mechanism": "[security]\nmechanism = 'MAGIC'\nuser = 'me'\npassword_env = 'X'",
    "mechanism without a user": "[security]\nmechanism = 'PLAIN'",
    "unknown key of security": "[security]\ncolour = 'red'",
    "byte order mark": b"\xef\xbb\xbf[timing]\ngrace_ms = 1\n",
    "UTF-16": "[timing]\ngrace_ms = 1\n".encode("utf-16"),
    "Latin-1": b"[about]\nname = '\xe4'\n",
    "null bytes": b"\0" * 64,
    "a picture": b"\x89PNG\r\n\x1a\n" + bytes(range(256)),
    "deep nesting": b"[known]\nJOIN-29 = " + b"[" * 5_000 + b"]" * 5_000,
    "an id of a megabyte": b"[known]\n" + b"A" * 1_000_000 + b" = 'x'",
    "escapes": b'[known]\n"\\u001b[31mJOIN" = "x"',
}
"""What is in the file."""
COMMANDS = (
    ("test", "bundled", "--profile", "p.toml"),
    ("replay", "t.jsonl", "bundled", "--profile", "p.toml"),
    ("record", "--upstream", "127.0.0.1:1", "-o", "new.jsonl", "--profile", "p.toml"),
    ("import", "capture", "x.pcap", "-o", "new.jsonl", "--profile", "p.toml"),
    ("pipeline", "campaign", "bundled", "--to", "c", "--seeds", "1", "--profile", "p.toml"),
)
FOR_OTHER_TARGETS: dict[str, str] = {
    "authority that is not there": "[security]\nca_file = 'none.pem'",
    "certificate without its key": "[security]\ncertificate_file = 'none.pem'",
    "start command": "[target]\nstart = 'true'",
}
"""Profiles that say something in vain about the bundled coordinator."""
CONTRADICTIONS: dict[str, str] = {
    "the target is nowhere": "[about]\nname = 'x'",
    "start command that is not there": "[target]\nstart = './no-such-command'",
    "start command that fails": "[target]\nstart = 'false'",
    "start command that says nothing": "[target]\nstart = 'true'",
    "start command that prints no address": "[target]\nstart = 'echo hello'",
    "start command that cannot be run": "[target]\nstart = './t.jsonl'",
}
"""Profiles that are well written; without a TARGET, nothing can be tested by them."""


def bad_profiles() -> Iterator[BadInput]:
    """Each mistake with `fencepost test`, and every other one with one of the other commands."""
    files = {"t.jsonl": SAMPLES.trace, "x.pcap": SAMPLES.capture}
    for number, (name, text) in enumerate(MISTAKES.items()):
        content = text if isinstance(text, bytes) else text.encode()
        commands = COMMANDS[:1] if number % 2 else (COMMANDS[0], COMMANDS[1 + number // 2 % 4])
        for words in commands:
            yield BadInput(f"profile of {words[0]}: {name}", words, "p.toml", {**files, "p.toml": content})
    for name, text in FOR_OTHER_TARGETS.items():
        for words in COMMANDS[:2]:
            place = text.partition("\n")[0]
            yield BadInput(f"profile of {words[0]} bundled: {name}", words, place, {**files, "p.toml": text.encode()})
    for name, text in CONTRADICTIONS.items():
        place = "command" if "start" in name else "no target"
        alone = {**files, "p.toml": text.encode()}
        yield BadInput(f"profile alone: {name}", ("test", "--profile", "p.toml"), place, alone)
    for words in COMMANDS:
        yield BadInput(f"profile of {words[0]}: not there", words, "p.toml", files)
