"""Programs that are no client, or a client that goes wrong during a run, and what `fencepost test-client` owes its
user then: one clear line (for each scenario that went wrong), no process left, the report, exit code 2 or 3."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from fencepost.adapters.wire.process_control import process_folders, stat_fields
from fencepost.conformance.results import ExitCode
from tests.acceptance.framework import ROOT, Figure, at_least, exactly
from tests.acceptance.runs import command_environment

STARTUP_S, FLOOD_S, LIMIT_S = 5, 60, 300
REQUIREMENTS = ("MEMBER-0*", "MEMBER-1[23]")
"""Those that the real client keeps."""
PLACE = ("{bootstrap}", "{group}", "{topic}")
CUT_SHORT = "Cut short: "
MARK = "FENCEPOST_ODD_CLIENT"
"""The variable by which the processes of a program are found that are left."""
HOST = 'import os, socket, time\nhost, port = os.environ["FENCEPOST_BOOTSTRAP"].split(":")\n'
SPEAK_HTTP = f"""{HOST}
socket.create_connection((host, int(port))).sendall(b"GET / HTTP/1.1\\r\\n\\r\\n")
time.sleep(600)
"""
FLOOD = f"""{HOST}
from fencepost.model.wire.codec import encode_request
frame = encode_request("Metadata", 9, 1, "flood", {{"topics": [], "allow_auto_topic_creation": False}})
while True:
    with socket.create_connection((host, int(port))) as connection:
        connection.settimeout(5)
        try:
            while True:
                connection.sendall(len(frame).to_bytes(4) + frame)
                connection.recv(65536)
        except OSError:
            pass
"""
CLIENT = str(Path(__file__).parents[2] / "docs" / "examples" / "clients" / "kafka_python_consumer.py")


@dataclass(frozen=True, slots=True)
class OddClient:
    """A program, what the line or the report has to say of it, and what comes of the run. The first `lives` of one that
    goes wrong later are those of a real client."""

    name: str
    words: tuple[str, ...]
    told: str
    exit_code: ExitCode = ExitCode.COULD_NOT_RUN
    driven: bool = False
    lives: int = 0
    startup_s: int = STARTUP_S

    def command(self, folder: Path) -> list[str]:
        """The command of the program; its lives are counted in `folder`."""
        if not self.lives:
            return list(self.words)
        count = f'n=$(ls {folder} | wc -l); : > {folder}/$$; [ "$n" -ge {self.lives} ] || exec "$@"; shift 5'
        return ["sh", "-c", f'{count}; exec "$@"', "sh", sys.executable, CLIENT, *PLACE, *self.words]


def shell(script: str) -> tuple[str, ...]:
    """A program of the shell."""
    return ("sh", "-c", script)


def python(script: str) -> tuple[str, ...]:
    """A program in Python."""
    return (sys.executable, "-c", script)


FORKS = "i=0; while [ $i -lt 200 ]; do sleep 600 & i=$((i + 1)); done; wait"
PRINTS = "while :; do echo garbage; echo garbage >&2; done"
EXITS = "echo broken >&2; exit 7"
ODD_CLIENTS = (
    OddClient("exits", shell(EXITS), "its last words: broken"),
    OddClient("hangs and never connects", ("sleep", "600"), "it never connected"),
    OddClient("prints garbage", shell(PRINTS), "its last words: garbage"),
    OddClient("speaks garbage", python(SPEAK_HTTP), "what is not Kafka's protocol"),
    OddClient("forks", shell(FORKS), "it never connected"),
    OddClient("floods", python(FLOOD), "exchanged 20000 messages", startup_s=FLOOD_S),
    OddClient("is not there", ("no-such-program",), "No such file or directory"),
    OddClient("driver that exits", shell(EXITS), "its last words: broken", driven=True),
    OddClient("driver that hangs", shell("cat > /dev/null"), "it never connected", driven=True),
    OddClient("driver that prints garbage", shell(PRINTS), "no JSON object", driven=True),
    OddClient("driver that writes no end", shell("yes | tr -d '\\n'"), "a line without an end", driven=True),
    OddClient("driver that forks", shell(FORKS), "it never connected", driven=True),
    OddClient("exits later", shell(EXITS), "ended by itself", ExitCode.INCONCLUSIVE, lives=4),
    OddClient("hangs later", ("sleep", "600"), "no JoinGroup came", ExitCode.INCONCLUSIVE, lives=4),
    OddClient("prints garbage later", shell(PRINTS), "no JoinGroup came", ExitCode.INCONCLUSIVE, lives=4),
    OddClient("forks later", shell(FORKS), "no JoinGroup came", ExitCode.INCONCLUSIVE, lives=4),
    OddClient(
        "floods later",
        python(FLOOD),
        "exchanged 20000 messages",
        ExitCode.INCONCLUSIVE,
        lives=4,
        startup_s=FLOOD_S,
    ),
)


def try_client(case: OddClient, folder: Path) -> list[str]:
    """Test an odd client; what was not kept of the promises."""
    place = folder / case.name.replace(" ", "-")
    lives, file, mark = place / "lives", place / "report.json", uuid4().hex
    lives.mkdir(parents=True)
    options = ["--only", *REQUIREMENTS, "--startup-seconds", str(case.startup_s)]
    options += [*(["--driven"] if case.driven else []), "--json", str(file), "--"]
    command = [sys.executable, "-m", "fencepost", "test-client", *options, *case.command(lives)]
    environment = command_environment() | {MARK: mark}
    try:
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        return [f"it goes on after {LIMIT_S} s"]
    report = json.loads(file.read_text()) if file.exists() else {}
    rows = report.get("requirements", [])
    reasons = [*(row["note"] for row in rows), *report.get("undecided", ()), (report.get("ended") or {}).get("reason")]
    passed = sum(row["verdict"] == "pass" for row in rows)
    checks = {
        f"exit code {done.returncode}": done.returncode != case.exit_code,
        f"{done.stdout.count(CUT_SHORT)} lines say why": done.stdout.count(CUT_SHORT) != (0 if case.lives else 1),
        "an error of the kit": "Traceback" in done.stdout + done.stderr,
        "no report": not report,
        f"the report does not say {case.told!r}": not any(case.told in reason for reason in reasons if reason),
        f"{len(list(processes_with(mark)))} processes are left": any(processes_with(mark)),
        "nothing is kept of what was tested": bool(case.lives) and not passed,
    }
    return [promise for promise, is_broken in checks.items() if is_broken]


def processes_with(mark: str) -> Iterator[int]:
    """The processes that run with the mark in their environment."""
    for folder in process_folders(Path("/proc")):
        try:
            has_mark = f"{MARK}={mark}".encode() in (folder / "environ").read_bytes()
        except OSError:  # it has ended, or is not ours
            continue
        if has_mark and int(folder.name) != os.getpid() and stat_fields(folder)[:1] not in ([], ["Z"]):
            yield int(folder.name)


def check_odd_clients(folder: Path) -> Iterator[Figure]:
    """Every odd client."""
    yield from count_kept([(case.name, try_client(case, folder)) for case in ODD_CLIENTS])


def count_kept(results: Sequence[tuple[str, list[str]]]) -> Iterator[Figure]:
    """How many were tried, and those that were not dealt with as promised."""
    failed = [(name, broken) for name, broken in results if broken]
    yield at_least("odd clients", len(results), len(ODD_CLIENTS))
    yield exactly("not one clear line, a process left, or something lost", len(failed), 0)
    for name, broken in failed:
        yield Figure(name, "; ".join(broken), "", False)
