"""Arguments that no command takes, values that no option takes, and options that do not go together."""

from collections.abc import Iterator

from tests.support.bad_inputs.bad_input import BadInput
from tests.support.bad_inputs.samples import SAMPLES

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
