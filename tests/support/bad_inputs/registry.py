"""All bad inputs, and those of arguments, addresses, profiles and recordings."""

import gzip
import json
from collections.abc import Callable, Iterator, Mapping

from tests.support.bad_inputs.bad_input import PASSWORD, SAMPLES, BadInput
from tests.support.bad_inputs.traces import bad_reports, bad_traces

# --- Texts that are no address, and addresses without a server.

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


# --- Arguments that no command takes, values that no option takes, and options that do not go together.

NUMBERS = ("-1", "0x10", "1.5", "", "ten", "1e3", "\u0661", "9" * 40 + "x")
"""Texts that are no number from 0 up."""
COUNTS = {
    "--schedules": "test bundled",
    "--tours": "test bundled",
    "--max-failures": "test bundled",
    "--slots": "prove",
    "--partitions": "prove",
    "--states": "prove",
    "--members": "explore",
    "--limit": "explore",
    "--seeds": "zoo",
    "--jobs": "zoo",
    "--port": "serve",
    "--slow-storage": "serve",
    "--buckets": "pipeline ingest t.jsonl --to c",
}
"""Options with a number, and a command that has them."""
USAGE = (
    ("unknown command", "frobnicate", "frobnicate"),
    ("mistyped command", "tset bundled", "'test'"),
    ("unknown option", "--frobnicate", "COMMAND"),
    ("option of another command", "test bundled --upstream h:1", "--upstream"),
    ("abbreviated option", "test bundled --smok", "--smok"),
    ("two targets", "test bundled bundled", "bundled"),
    ("smoke and slow", "test bundled --smoke --slow", "--slow"),
    ("quiet and verbose", "test bundled -q -v", "-v"),
    ("-x and --max-failures", "test bundled -x --max-failures 2", "--max-failures"),
    ("no target", "test", "TARGET"),
    ("only without pattern", "test bundled --only", "--only"),
    ("a pattern that matches nothing", "test bundled --only NO-99", "NO-99"),
    ("an excluded pattern that matches nothing", "test bundled --exclude NO-99", "NO-99"),
    ("everything is excluded", "test bundled --exclude *", "excluded"),
    ("seed that is a word", "test bundled --seed x", "--seed"),
    ("seed that is a fraction", "test bundled --seed 1.5", "--seed"),
    ("seconds below 0", "test bundled --seconds -1", "--seconds"),
    ("seconds that are not finite", "test bundled --seconds inf", "--seconds"),
    ("seconds that are no number", "test bundled --seconds nan", "--seconds"),
    ("seconds with a unit", "test bundled --seconds 5m", "--seconds"),
    ("shrink seconds", "test bundled --shrink-seconds long", "--shrink-seconds"),
    ("failures from 1 up", "test bundled --max-failures 0", "--max-failures"),
    ("replay of nothing", "replay", "TRACE"),
    ("replay without target", "replay t.jsonl", "TARGET"),
    ("judge of nothing", "judge", "TRACE"),
    ("report of nothing", "report", "report"),
    ("record without upstream", "record -o t.jsonl", "--upstream"),
    ("record without output", "record --upstream 127.0.0.1:1", "--output"),
    ("record with a size of 0", "record --upstream 127.0.0.1:1 -o t --rotate 0", "--rotate"),
    ("record with a size in words", "record --upstream 127.0.0.1:1 -o t --rotate big", "--rotate"),
    ("record without time", "record --upstream 127.0.0.1:1 -o t --seconds 0", "--seconds"),
    ("import of nothing", "import", "KIND"),
    ("import of an unknown kind", "import tape x -o t", "tape"),
    ("import without output", "import log x.log", "--output"),
    ("import with a port of 0", "import capture x.pcap -o t --port 0", "--port"),
    ("serve on a port too high", "serve --port 65536", "--port"),
    ("serve on an address of nobody", "serve --host 203.0.113.1 --port 0", "203.0.113.1"),
    ("explain nothing", "explain", "ID"),
    ("explain the unknown", "explain JOIN-999", "JOIN-999"),
    ("list the unknown", "list NOPE-*", "NOPE-*"),
    ("zoo without such a bug", "zoo --only BUG-999", "BUG-999"),
    ("zoo with an unknown strategy", "zoo --by magic", "--by"),
    ("more slots than members", "explore --members 0", "--members"),
    ("settle and no liveness", "explore --settle 2 --no-liveness", "--no-liveness"),
    ("pipeline of nothing", "pipeline", "COMMAND"),
    ("pipeline without target folder", "pipeline ingest t.jsonl", "--to"),
    ("pipeline setting without a value", "pipeline judge c --conf spark", "--conf"),
    ("pipeline seeds", "pipeline campaign bundled --to c --seeds 0", "--seeds"),
    ("pipeline port of traces", "pipeline ingest t.jsonl --to c --port 9092", "--port"),
)
OUTPUTS = (
    ("in no folder", "test bundled --smoke --json none/r.json", "none/r.json"),
    ("in a file", "test bundled --smoke --json t.jsonl/r.json", "t.jsonl/r.json"),
    ("that is a folder", "test bundled --smoke --junit .", "."),
    ("HTML in no folder", "test bundled --smoke --html none/r.html", "none/r.html"),
    ("Markdown in no folder", "judge t.jsonl --markdown none/r.md", "none/r.md"),
    ("twice the same", "test bundled --smoke --json r --junit r", "--junit"),
    ("twice standard output", "test bundled --smoke --json - --junit -", "standard output"),
    ("folder that is a file", "test bundled --smoke --save t.jsonl", "t.jsonl"),
    ("traces into a file", "test bundled --smoke --traces t.jsonl", "t.jsonl"),
    ("of judge", "judge t.jsonl --json none/r.json", "none/r.json"),
    ("of judge over its trace", "judge t.jsonl --json t.jsonl", "t.jsonl"),
    ("of report over its source", "report r.json --json r.json", "r.json"),
    ("of report", "report r.json --html none/r.html", "none/r.html"),
    ("of prove", "prove --json none/r.json", "none/r.json"),
    ("of explore", "explore --picture none/p.md", "none/p.md"),
    ("of explore twice", "explore --dot p --picture p", "--picture"),
    ("of zoo", "zoo --json none/z.json", "none/z.json"),
    ("of record in no folder", "record --upstream 127.0.0.1:1 -o none/t.jsonl", "none"),
    ("of import in no folder", "import log x.log -o none/t.jsonl", "none/t.jsonl"),
    ("of import over its log", "import log x.log -o x.log", "x.log"),
    ("of import over a trace", "import log x.log -o t.jsonl", "t.jsonl"),
    ("name too long", f"test bundled --smoke --json {'n' * 300}", "nnn"),
)


def bad_arguments() -> Iterator[BadInput]:
    """Bad arguments of every command."""
    for name, line, place in USAGE:
        yield BadInput(f"usage: {name}", tuple(line.split()), place)
    for option, command in COUNTS.items():
        for text in NUMBERS if option in ("--schedules", "--slots") else NUMBERS[:1] + NUMBERS[-1:]:
            yield BadInput(f"number: {option} {text[:20]!r}", (*command.split(), f"{option}={text}"), option)
    files = {"t.jsonl": SAMPLES.trace, "x.log": SAMPLES.log, "r.json": report_bytes()}
    for name, line, place in OUTPUTS:
        yield BadInput(f"output: {name}", tuple(line.split(" ")), place, files)


def report_bytes() -> bytes:
    """A report as a file has it."""
    import json

    return json.dumps(SAMPLES.report).encode()


# --- Profiles with a mistake, given to every command that takes one.

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


# --- Broker logs, packet captures and corpora that cannot be read.

LOG = ("import", "log", "x.log", "-o", "new.jsonl")
CAPTURE = ("import", "capture", "x.pcap", "-o", "new.jsonl")


def bad_logs() -> Iterator[tuple[str, bytes]]:
    """Files in which no group coordinator speaks."""
    yield "empty", b""
    yield "null bytes", b"\0" * 1_000
    yield "plain words", b"hello\nworld\n"
    yield "the log of another part", b"[2026-01-01 00:00:00,000] INFO [Partition x-0 broker=0] Log loaded (kafka.log)\n"
    yield "a picture", b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 8
    yield "UTF-16", SAMPLES.log.decode().encode("utf-16")
    yield "a line of a megabyte", b"x" * 1_000_000
    yield "a trace", SAMPLES.trace


def bad_captures() -> Iterator[tuple[str, bytes]]:
    """Files that are no packet capture, or a damaged one."""
    good = SAMPLES.capture
    yield "empty", b""
    yield "plain words", b"hello\n"
    yield "only the magic", good[:4]
    yield "only its header", good[:24]
    yield "cut within a header", good[:10]
    yield "with a packet of 2 GB", good[:24] + good[24:32] + b"\xff\xff\xff\x7f" * 2 + good[40:]
    yield "of another link", good[:20] + b"\xff\xff\0\0" + good[24:]
    yield "of a link that is no network", good[:20] + b"\xc3\0\0\0" + good[24:]
    yield "a log", SAMPLES.log
    yield "compressed and cut off", gzip.compress(good)[:-40]
    yield "null bytes", b"\0" * 100


def bad_corpora() -> Iterator[BadInput]:
    """Folders that are no corpus."""
    judge = ("pipeline", "judge", "c")
    ingest = ("pipeline", "ingest", "t.jsonl", "--to", "c")
    trace = {"t.jsonl": SAMPLES.trace}
    yield BadInput("corpus: not there", judge, "c")
    yield BadInput("corpus: an empty folder", judge, "c", {"c/notes.txt": b""})
    yield BadInput("corpus: a file", judge, "c", {"c": b"x"})
    yield BadInput("corpus: damaged", judge, "c", {"c/corpus.json": b"{"})
    yield BadInput("corpus: a list", judge, "c", {"c/corpus.json": b"[]"})
    yield BadInput("corpus: a newer one", judge, "c", {"c/corpus.json": json.dumps({"format": 99}).encode()})
    yield BadInput("corpus: a report that cannot be written", (*judge, "--json", "none/r.json"), "none/r.json")
    yield BadInput("corpus: ingest into a folder of others", ingest, "c", {**trace, "c/precious.txt": b"x"})
    yield BadInput("corpus: ingest into a file", ingest, "c", {**trace, "c": b"x"})
    yield BadInput("corpus: ingest of nothing", ("pipeline", "ingest", "none", "--to", "c"), "none")
    yield BadInput("corpus: watch of no folder", ("pipeline", "watch", "none", "--to", "c"), "none")
    yield BadInput("corpus: watch of a file", ("pipeline", "watch", "t.jsonl", "--to", "c"), "t.jsonl", trace)
    campaign = ("pipeline", "campaign", "nowhere", "--to", "c", "--seeds", "1")
    yield BadInput("corpus: campaign on no target", campaign, "nowhere")
    full = {"c/precious.txt": b"x"}
    words = ("pipeline", "campaign", "bundled", "--to", "c", "--seeds", "1")
    yield BadInput("corpus: campaign into a folder of others", words, "c", full)


def bad_recordings() -> Iterator[BadInput]:
    """Bad logs, captures and corpora."""
    for name, content in bad_logs():
        yield BadInput(f"log: {name}", LOG, "x.log", {"x.log": content})
    yield BadInput("log: not there", LOG, "x.log")
    yield BadInput("log: one of two", (*LOG[:3], "y.log", *LOG[3:]), "y.log", {"x.log": SAMPLES.log})
    for name, content in bad_captures():
        yield BadInput(f"capture: {name}", CAPTURE, "x.pcap", {"x.pcap": content})
    yield BadInput("capture: not there", CAPTURE, "x.pcap")
    files = {"x.pcap": SAMPLES.capture}
    yield BadInput("capture: of another port", (*CAPTURE, "--port", "9"), "port 9", files)
    yield BadInput("capture: over itself", (*CAPTURE[:-1], "x.pcap"), "x.pcap", files)
    yield from bad_corpora()


KINDS: Mapping[str, Callable[[], Iterator[BadInput]]] = {
    "arguments": bad_arguments,
    "addresses": bad_addresses,
    "profiles": bad_profiles,
    "traces": bad_traces,
    "reports": bad_reports,
    "recordings": bad_recordings,
}
"""What makes the bad inputs of a kind."""


def all_bad_inputs() -> list[BadInput]:
    """Every bad input; no two have one name."""
    return [case for make in KINDS.values() for case in make()]
