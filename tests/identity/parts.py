"""The parts of the identity set. A part gives entries: a name, and a value of JSON that must stay.

Nearly all of them are asked through the command line, whose words and formats are contracts.
"""

import hashlib
import inspect
import io
import json
import os
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import fencepost
import fencepost.testing
from fencepost.adapters.virtual_clock import run_virtual
from fencepost.conformance.cli import main
from fencepost.conformance.reports.json_report import to_json
from fencepost.conformance.run.stream import save_trace
from tests.identity.verdicts import RECORDINGS, recorded_verdicts
from tests.support.client_scenarios import COOPERATIVE, EAGER, make_run
from tests.support.client_schedules import make_bench
from tests.support.faulty_clients import STATIC

ROOT = Path(__file__).parents[2]
CHANGING = frozenset(
    ("seconds", "longest_query_seconds", "provenance", "kit", "states_per_second", "median_seconds", "started")
)
"""Fields of JSON that another run, or another version of the kit, says otherwise."""
MODULES = re.compile(r"\bfencepost(\.\w+)*\.(?=[A-Z])")
"""Where a type is, which is nobody's business but ours."""
TIMES = re.compile(r"\b\d[\d,.]* ?(s|states/s|min)\b")
"""Times and speeds in texts."""

Entries = Iterator[tuple[str, Any]]


def ask(*arguments: str) -> tuple[int, str]:
    """The exit code and the standard output of a command, run in the folder of the checkout, 80 columns wide."""
    output = io.StringIO()
    os.environ["COLUMNS"] = "80"
    os.chdir(ROOT)
    with redirect_stdout(output), redirect_stderr(io.StringIO()):
        try:
            code = main(list(arguments))
        except SystemExit as ended:
            code = int(ended.code or 0)
    return code, output.getvalue()


def ask_json(*arguments: str) -> Any:
    """The JSON that a command writes, without what changes from run to run."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "out.json"
        code, _ = ask(*arguments, "--json", str(path))
        return {"exit": code, **without_changes(json.loads(path.read_text()))} if path.exists() else {"exit": code}


def without_changes(value: Any) -> Any:
    """A JSON value without the fields that change from run to run."""
    if isinstance(value, dict):
        return {key: without_changes(each) for key, each in value.items() if key not in CHANGING}
    return [without_changes(each) for each in value] if isinstance(value, list) else value


def digest(value: Any) -> str:
    """A short digest of a JSON value."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


def summary_of(report: Any) -> dict[str, Any]:
    """What a report says of the requirements that it speaks of, and a digest of all that it says."""
    spoken = {row["id"]: row["verdict"] for row in report.get("requirements", ()) if row["verdict"] != "not-observed"}
    return {"exit": report["exit"], "verdicts": spoken, "digest": digest(report)}


# --- what people read and write


def catalogue() -> Entries:
    """Every requirement with its level, title, sentence, source and needs, as `explain` prints it."""
    for requirement in fencepost.requirements():
        yield requirement.id, ask("explain", requirement.id)[1]


def commands() -> list[tuple[str, ...]]:
    """The command line's commands, and the commands of those that have some."""
    found: list[tuple[str, ...]] = [()]
    for words in found:
        _, text = ask(*words, "--help")
        listed = re.findall(r"^    ([a-z][a-z-]*)(?:  |$)", text.partition("positional arguments:")[2], re.M)
        usage = text.partition("\n\n")[0]
        if "COMMAND" in usage and len(words) < 2:
            found += [(*words, name) for name in listed]
    return found


def help_texts() -> Entries:
    """The help of every command."""
    for words in commands():
        yield " ".join(("fencepost", *words)), ask(*words, "--help")[1]


def public_names() -> Entries:
    """The public names with the signatures of functions."""
    for module in (fencepost, fencepost.testing):
        for name in sorted(module.__all__):
            value = getattr(module, name)
            signature = (
                MODULES.sub("", str(inspect.signature(value))) if inspect.isfunction(value) else type(value).__name__
            )
            yield f"{module.__name__}.{name}", signature


def formats() -> Entries:
    """The published schemas."""
    for path in sorted(ROOT.glob("conformance/**/*.schema.json")):
        yield path.name, json.loads(path.read_text())


def registry() -> Entries:
    """Committed reports, as `report` prints them and as it prints them in Markdown."""
    for path in sorted((ROOT / "docs/registry").rglob("*.json")):
        name = str(path.relative_to(ROOT))
        code, text = ask("report", name)
        yield name, {"exit": code, "text": text}


def zoo_results() -> Entries:
    """How each bug and each mutant was found."""
    for path in sorted((ROOT / "conformance/zoo").glob("*.json")):
        table = json.loads(path.read_text())
        for row in table["rows"] if isinstance(table, dict) else table:
            yield row["name"], {key: row.get(key) for key in ("found_by", "requirement", "seed")}


# --- runs


def bundled() -> Entries:
    """Whole runs on the bundled coordinator, with many random schedules."""
    for seed in (0, 1, 2):
        yield f"seed {seed}", ask_json("test", "bundled", "--seed", str(seed), "--schedules", "300")


def older_designs() -> Entries:
    """Whole runs on the bundled coordinators and operators of the other protocols."""
    for target in ("push://bundled", "region://bundled"):
        for seed in (0, 1):
            yield f"{target} seed {seed}", ask_json("test", target, "--seed", str(seed))


def clients() -> Entries:
    """Scenarios and random schedules on the reference client, with their verdicts."""
    for kind, settings in (("eager", EAGER), ("cooperative", COOPERATIVE)):
        report = run_virtual(make_run(settings=settings).run())
        yield f"{kind} scenarios", without_changes(json.loads(to_json(report)))
    for kind, settings in (("eager", EAGER), ("cooperative", COOPERATIVE), ("static", STATIC)):
        for is_driven in (True, False):
            bench = make_bench(settings, is_driven=is_driven)
            for generated in bench.protocol.generate(5, 0, 12):
                run = bench.play(generated.schedule)
                with tempfile.TemporaryDirectory() as folder:
                    path = Path(folder) / "trace.jsonl"
                    save_trace(path, run.header, run.events)
                    name = f"{kind} {'driven' if is_driven else 'undriven'} {generated.schedule.name}"
                    yield name, summary_of(ask_json("judge", str(path)))


# --- verdicts on traces


def traces(paths: Iterable[Path]) -> Entries:
    """The report of each trace."""
    for path in paths:
        yield str(path.relative_to(ROOT)), summary_of(ask_json("judge", str(path.relative_to(ROOT))))


def trace_files() -> list[Path]:
    """All committed traces of coordinators and clients."""
    folders = (RECORDINGS, ROOT / "tests/traces", ROOT / "tests/conformance", ROOT / "docs/examples")
    return sorted(path for folder in folders for path in folder.rglob("*.jsonl*") if "requests" not in path.name)


def committed_traces() -> Entries:
    """The report of every committed trace, judged by itself."""
    return traces(trace_files())


# --- the laboratory


def theorems() -> Entries:
    """Theorems with their sentences, scopes and verdicts."""
    for protocol in ("classic", "push", "region"):
        for row in ask_json("prove", protocol)["theorems"]:
            yield f"{protocol} {row['id']}", row


def state_counts() -> Entries:
    """States, transitions and properties of exhaustive searches."""
    for words in (("classic",), ("classic", "--members", "2", "--static", "1", "--ids", "3"), ("proposal",)):
        if words == ("proposal",):
            yield "proposal", TIMES.sub("N s", ask("explore", *words)[1])
        else:
            yield " ".join(words), ask_json("explore", *words)


def older_state_counts() -> Entries:
    """The searches for the holes of the other protocols."""
    for protocol in ("push", "region"):
        yield protocol, TIMES.sub("N s", ask("explore", protocol)[1])


PARTS: dict[str, Callable[[], Entries]] = {
    "catalogue": catalogue,
    "help": help_texts,
    "names": public_names,
    "formats": formats,
    "registry": registry,
    "zoo": zoo_results,
    "bundled": bundled,
    "older": older_designs,
    "clients": clients,
    "traces": committed_traces,
    "recordings": recorded_verdicts,
    "theorems": theorems,
    "states": state_counts,
    "older-states": older_state_counts,
}
