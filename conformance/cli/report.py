"""The commands that take saved reports: `report`, also on the story of traces, `badge`, and `registry`."""

import argparse
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fencepost.conformance.cli.console import Console, UsageError, run_interruptible
from fencepost.conformance.cli.options import JOBS, LOUDNESS, REPORT_FILES, Command, OneOf, Option, days, report_paths

if TYPE_CHECKING:
    from fencepost.conformance.reports.badge import Badge
    from fencepost.conformance.results import Report

TIERS = ("core", "limits", "transactions", "durability", "cluster")


# --- report


def run_report(options: argparse.Namespace, console: Console) -> int:
    """Show saved reports, or the report on traces, and write it to files."""
    from fencepost.conformance.analysis.causes import compare_reports
    from fencepost.conformance.cli.files import RENDERERS, ReportFiles, check_outputs, write_output
    from fencepost.conformance.reports.html import render_html
    from fencepost.conformance.reports.json_report import report_schema
    from fencepost.conformance.reports.report import describe_comparison, describe_reports
    from fencepost.conformance.reports.text import render_text
    from fencepost.conformance.results import ExitCode

    if options.schema:
        console.print(report_schema())
        return ExitCode.CONFORMANT
    paths = report_paths(options)
    saved, traces = split_sources(options.sources)
    check_request(saved, traces, options.compare, paths)
    if traces and options.compare is None and not saved and not has_clients(traces):
        return tell_traces(traces, options, console)
    reports = [*map(read_report, saved), *judge_traces(traces, options, console)]
    old = read_report(options.compare) if options.compare is not None else None
    check_outputs(paths, inputs=[*options.sources, options.compare])
    files = ReportFiles(console, paths, RENDERERS if old is None else compared_renderers(old))
    if len(reports) > 1:
        overview, page = describe_reports(reports), paths["--html"]
        files.print(render_text(overview))
        written = page is None or write_output(page, render_html(overview), console)
        return ExitCode.CONFORMANT if written else ExitCode.COULD_NOT_RUN
    (report,) = reports
    files.write(report)
    if old is not None:
        files.print(render_text(describe_comparison(old, report)))
        is_worse = compare_reports(old, report).is_worse
        return files.exit_code(ExitCode.VIOLATION if is_worse else ExitCode.CONFORMANT)
    files.show(report)
    return files.exit_code(report.exit_code())


def split_sources(sources: Sequence[Path]) -> tuple[list[Path], list[Path]]:
    """The saved reports and the traces among the sources, by their content. Raises `SourceError` and `OSError`."""
    from fencepost.conformance.cli.files import SourceKind, kind_of

    kinds = [(path, kind_of(path)) for path in sources]
    traces = [path for path, kind in kinds if kind is SourceKind.TRACE]
    return [path for path, kind in kinds if kind is not SourceKind.TRACE], traces


def has_clients(traces: Sequence[Path]) -> bool:
    """Whether one of the traces is that of a client, of whose group there is no story to tell."""
    from fencepost.conformance.cli.judge import find_traces
    from fencepost.conformance.clients.run import find_client_traces

    return bool(find_client_traces(tuple(find_traces(traces))))


def check_request(
    saved: Sequence[Path], traces: Sequence[Path], old: Path | None, paths: dict[str, Path | None]
) -> None:
    """Raises `UsageError` for arguments that do not go together."""
    if not saved and not traces:
        raise UsageError("report", "name a report or traces")
    count = len(saved) + bool(traces)
    if count > 1 and old is not None:
        raise UsageError("report", "--compare takes one report beside the older one")
    single = [option for option, path in paths.items() if path is not None and option != "--html"]
    if count > 1 and single:
        raise UsageError("report", f"{single[0]} takes one report; several make a page with --html")


def read_report(path: Path) -> "Report":
    """A saved report. Raises `ReportError`, which names the file, and `OSError`."""
    from fencepost.conformance.cli.files import SourceKind, kind_of
    from fencepost.conformance.reports.json_report import ReportError, from_html, from_json

    try:
        text = path.read_text(encoding="utf-8")
        return from_html(text) if kind_of(path) is SourceKind.PAGE else from_json(text)
    except (ReportError, UnicodeDecodeError) as error:
        raise ReportError(f"{path}: {error}") from None


def judge_traces(traces: Sequence[Path], options: argparse.Namespace, console: Console) -> list["Report"]:
    """The report on the traces, if there are any."""
    from fencepost.conformance.cli import judge
    from fencepost.conformance.run import runner

    if not traces:
        return []
    with console.progress() as progress:
        return [judge.judge_traces(tuple(judge.find_traces(traces)), progress, options.runner or runner, options.jobs)]


def tell_traces(traces: Sequence[Path], options: argparse.Namespace, console: Console) -> int:
    """Print the histories of the groups in the traces, and write them and the report to files."""
    from fencepost.conformance.cli.files import RENDERERS, ReportFiles, check_outputs
    from fencepost.conformance.cli.judge import find_traces
    from fencepost.conformance.reports.html import render_html
    from fencepost.conformance.reports.incident import describe_incident
    from fencepost.conformance.reports.json_report import to_json
    from fencepost.conformance.reports.markdown import render_markdown
    from fencepost.conformance.reports.text import render_text
    from fencepost.conformance.run import runner
    from fencepost.traces.history.builder import TraceHistory

    paths = report_paths(options)
    found = tuple(find_traces(traces))
    check_outputs(paths)
    histories: list[TraceHistory] = []
    renderers = {
        **RENDERERS,
        "--json": lambda report: to_json(report, histories),
        "--html": lambda report: render_html(describe_incident(histories, report), to_json(report)),
        "--markdown": lambda report: render_markdown(describe_incident(histories, report)),
    }
    files = ReportFiles(console, paths, renderers)

    with files.write_failure("recorded traces"), console.progress() as progress:
        report = (options.runner or runner).judge_files(found, progress, histories, options.jobs)
    files.write(report)
    colour = console.has_colour() and not files.takes_stdout
    files.print(render_text(describe_incident(histories, report), colour=colour))
    return files.exit_code(report.exit_code())


def compared_renderers(old: "Report") -> "Mapping[str, Callable[[Report], str]]":
    """What writes the files of a report; page and Markdown have what changed since an older one."""
    from fencepost.conformance.cli.files import RENDERERS
    from fencepost.conformance.reports.html import render_html
    from fencepost.conformance.reports.markdown import render_markdown
    from fencepost.conformance.reports.report import describe_comparison

    return {
        **RENDERERS,
        "--html": lambda report: render_html(describe_comparison(old, report)),
        "--markdown": lambda report: render_markdown(describe_comparison(old, report)),
    }


# --- badge


def run_badge(options: argparse.Namespace, console: Console) -> int:
    """Write the files of a badge, or compare them."""
    from fencepost.conformance.reports.badge import badge_files
    from fencepost.conformance.results import ExitCode

    badge = badge_of(options)
    texts = badge_files(badge, options.link or options.report.name)
    console.print_line(f"{badge.colour}: {badge.message}")
    if options.output is not None:
        options.output.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            (options.output / name).write_text(text, encoding="utf-8")
        return ExitCode.CONFORMANT
    wrong = [name for name, text in texts.items() if read_text(options.check / name) != text]
    for name in wrong:
        console.print_line(f"{options.check / name} does not follow from {options.report}")
    return ExitCode.VIOLATION if wrong else ExitCode.CONFORMANT


def badge_of(options: argparse.Namespace) -> "Badge":
    """The badge that the options ask for. Raises `ReportError`, `UsageError` and `OSError`."""
    from datetime import UTC, datetime, timedelta

    from fencepost.conformance.cli.files import SourceKind, kind_of
    from fencepost.conformance.reports.badge import make_badge
    from fencepost.model.catalogue.requirement import Tier

    if kind_of(options.report) is SourceKind.TRACE:
        raise UsageError("badge", "a trace makes no badge: it shows a part of the protocol; name a saved report")
    age = timedelta(days=options.max_age) if options.max_age is not None else None
    return make_badge(read_report(options.report), Tier(options.tier), datetime.now(UTC), age)


def read_text(path: Path) -> str | None:
    """The text of a file; None if there is none."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None


# --- registry


def check_registry(options: argparse.Namespace, console: Console) -> int:
    """Check all entries and print a line for each problem."""
    from fencepost.conformance.clients.protocol import client_protocol
    from fencepost.conformance.reports.registry import RegistryError, find_entries, find_problems, read_entry
    from fencepost.conformance.results import ExitCode

    folders, problems = find_entries(options.path), 0
    for folder in folders:
        try:
            found = list(find_problems(read_entry(folder), client_protocol(is_driven=False).follow))
        except RegistryError as error:
            found = [str(error)]
        for problem in found:
            console.print_line(problem)
        problems += len(found)
    count = f"{len(folders)} report{'' if len(folders) == 1 else 's'}"
    console.print_line(f"{count}: {problems} problem{'' if problems == 1 else 's'}")
    return ExitCode.VIOLATION if problems else ExitCode.CONFORMANT


def build_registry(options: argparse.Namespace, console: Console) -> int:
    """Write the site."""
    from fencepost.conformance.reports.registry import read_entries
    from fencepost.conformance.reports.registry_site import build_site
    from fencepost.conformance.results import ExitCode

    site = build_site(list(read_entries(options.path)))
    for name, text in site.items():
        path = options.output / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    console.print_line(f"{len(site)} files in {options.output}")
    return ExitCode.CONFORMANT


def reproduce_entry(options: argparse.Namespace, console: Console) -> int:
    """Run the plan of one entry again and print where the verdicts differ."""
    from fencepost.conformance.reports.registry import find_differences, find_entries, plan_again, read_entry
    from fencepost.conformance.reports.words import outcome_line
    from fencepost.conformance.results import ExitCode
    from fencepost.conformance.run import runner
    from fencepost.conformance.run.stream import progress_consumer

    folders = find_entries(options.path)
    if len(folders) > 1:
        raise UsageError("registry", f"{options.path} has {len(folders)} entries; name the folder of one version")
    entry = read_entry(folders[0])
    plan = plan_again(entry, options.target)
    with console.progress() as progress:
        report = run_interruptible((options.runner or runner).run(plan, progress_consumer(progress)))
    differences = list(find_differences(entry.report, report))
    for difference in differences:
        console.print_line(difference)
    console.print_line(outcome_line(report))
    if report.ended is not None:
        return ExitCode.INCONCLUSIVE
    return ExitCode.VIOLATION if differences else ExitCode.CONFORMANT


# --- the commands

_REGISTRY = Option("path", "PATH", "a registry, or a folder in it", Path)
_CHECK = Command(
    check_registry, (_REGISTRY, LOUDNESS), epilog="The exit code is 1 if something is wrong with an entry."
)
_BUILD = Command(
    build_registry, (Option("-o --output", "DIR", "the folder of the site", Path, required=True), _REGISTRY, LOUDNESS)
)
_REPRODUCE = Command(
    reproduce_entry,
    (Option("--target", "TARGET", "run it on this target (default: that of its profile)"), LOUDNESS, _REGISTRY),
    epilog="The exit code is 1 if a requirement is decided otherwise.",
)
COMMANDS = {
    "report": Command(
        run_report,
        (
            Option(
                "sources",
                "SOURCE",
                "a report (JSON, or the page made of one), or traces whose story is told (a folder: all in it)",
                Path,
                nargs="*",
            ),
            JOBS,
            *REPORT_FILES,
            Option("--compare", "OLD", "say what changed since this older report", Path),
            Option("--schema", help="print the JSON Schema of reports"),
            LOUDNESS,
        ),
        epilog="Of traces it tells the story of each group: generations, members, who left and why, how long each "
        "rebalance took and who held it up; --json has them beside the report that `fencepost judge` gives, --junit "
        "the report. Several reports make one page with a column for each. The exit code is that of the report, 0 for "
        "several; with --compare, which --html and --markdown tell too, it is 1 if a requirement is newly broken or no "
        "longer checked.",
    ),
    "badge": Command(
        run_badge,
        (
            Option("report", "REPORT", "a saved report: JSON, or the page made of one", Path),
            OneOf(
                (
                    Option("-o --output", "DIR", "write fencepost.svg, .json and .md there", Path),
                    Option("--check", "DIR", "check that the files there follow from the report", Path),
                ),
                required=True,
            ),
            Option("--tier", help="the requirements to count", choices=TIERS),
            Option("--max-age", "D", "an older report is outdated: 90d (default: none)", days),
            Option("--link", "URL", "address of the report (default: its file name)"),
            LOUDNESS,
        ),
        epilog="A badge is green only for a finished run of the whole catalogue of this release without violations, "
        "open questions and declared deviations. With --check the exit code is 1 if a file differs. A report that is "
        "forged as a whole is not detected.",
    ),
    "registry": Command(
        actions={
            "check": ("check entries, before they are committed and after", _CHECK),
            "build": ("make the site of a registry", _BUILD),
            "reproduce": ("run the plan of an entry again and compare", _REPRODUCE),
        },
        metavar="ACTION",
    ),
}
