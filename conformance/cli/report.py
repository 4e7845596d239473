"""`fencepost report`: saved reports in, or traces with the history of their groups; text, pages and comparisons out."""

import argparse
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fencepost.conformance.cli.console import Console
from fencepost.conformance.cli.report_options import add_report_options, report_paths
from fencepost.conformance.cli.usage import UsageError

if TYPE_CHECKING:
    from fencepost.conformance.results import Report


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `fencepost report`."""
    parser.add_argument(
        "sources",
        metavar="SOURCE",
        nargs="*",
        type=Path,
        help="a report (JSON, or the page made of one), or traces whose story is told (a folder: all in it)",
    )
    add_report_options(parser)
    parser.add_argument("--compare", metavar="OLD", type=Path, help="say what changed since this older report")
    parser.add_argument("--schema", action="store_true", help="print the JSON Schema of reports")
    parser.epilog = (
        "Of traces it tells the story of each group: generations, members, who left and why, how long each rebalance "
        "took and who held it up; --json has them beside the report that `fencepost judge` gives, --junit the report. "
        "Several reports make one page with a column for each. The exit code is that of the report, 0 for several; "
        "with --compare, which --html and --markdown tell too, it is 1 if a requirement is newly broken or no longer "
        "checked."
    )


def run(options: argparse.Namespace, console: Console) -> int:
    """Show saved reports, or the report on traces, and write it to files."""
    from fencepost.conformance.cli.outputs import RENDERERS, ReportFiles, check_outputs, write_output
    from fencepost.conformance.pages.overview import render_overview, to_overview_html
    from fencepost.conformance.reports.comparison import render_comparison
    from fencepost.conformance.reports.json_report import report_schema
    from fencepost.conformance.reports.text import render_report
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
    show = console.print_error if files.takes_stdout else console.print
    if len(reports) > 1:
        show(render_overview(reports))
        page = paths["--html"]
        written = page is None or write_output(page, to_overview_html(reports), console)
        return ExitCode.CONFORMANT if written else ExitCode.COULD_NOT_RUN
    (report,) = reports
    files.write(report)
    if old is not None:
        show(render_comparison(old, report))
        code = compared_code(old, report)
    else:
        show(render_report(report, colour=console.has_colour() and not files.takes_stdout, width=console.width()))
        code = report.exit_code()
    return ExitCode.COULD_NOT_RUN if files.failed else code


def split_sources(sources: Sequence[Path]) -> tuple[list[Path], list[Path]]:
    """The saved reports and the traces among the sources, by their content. Raises `SourceError` and `OSError`."""
    from fencepost.conformance.cli.report_sources import SourceKind, kind_of

    kinds = [(path, kind_of(path)) for path in sources]
    traces = [path for path, kind in kinds if kind is SourceKind.TRACE]
    return [path for path, kind in kinds if kind is not SourceKind.TRACE], traces


def has_clients(traces: Sequence[Path]) -> bool:
    """Whether one of the traces is that of a client, of whose group there is no story to tell."""
    from fencepost.conformance.cli.judge import find_traces
    from fencepost.conformance.clients.judging import find_client_traces

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
    from fencepost.conformance.cli.report_sources import SourceKind, kind_of
    from fencepost.conformance.pages.html_page import from_html
    from fencepost.conformance.reports.json_report import ReportError, from_json

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
        return [judge.judge_traces(tuple(judge.find_traces(traces)), progress, options.runner or runner)]


def tell_traces(traces: Sequence[Path], options: argparse.Namespace, console: Console) -> int:
    """Print the histories of the groups in the traces, and write them and the report to files."""
    from fencepost.conformance.cli.judge import find_traces
    from fencepost.conformance.cli.outputs import RENDERERS, ReportFiles, check_outputs, ending_of
    from fencepost.conformance.pages.incident_markdown import to_incident_markdown
    from fencepost.conformance.pages.incident_page import to_incident_html
    from fencepost.conformance.pages.markdown import to_markdown
    from fencepost.conformance.reports.incident_text import render_histories, render_verdict
    from fencepost.conformance.reports.json_report import to_json
    from fencepost.conformance.results import ExitCode
    from fencepost.conformance.run import runner
    from fencepost.traces.events import Header
    from fencepost.traces.files.trace_files import TraceError
    from fencepost.traces.history.observer import TraceObserver
    from fencepost.traces.history.registry import NoHistory, make_recorder
    from fencepost.traces.history.timeline import TraceHistory

    paths = report_paths(options)
    found = tuple(find_traces(traces))
    check_outputs(paths)
    histories: list[TraceHistory] = []
    renderers = {
        **RENDERERS,
        "--json": lambda report: to_json(report, histories),
        "--html": lambda report: to_incident_html(histories, report),
        "--markdown": lambda report: to_incident_markdown(histories, to_markdown(report)),
    }
    files = ReportFiles(console, paths, renderers)

    def record_history(path: str, header: Header) -> TraceObserver:
        try:
            return make_recorder(path, header, histories)
        except NoHistory as error:
            raise TraceError(path, 1, str(error)) from None

    try:
        with console.progress() as progress:
            report = (options.runner or runner).judge_files(found, progress, record_history)
    except BaseException as error:
        files.write_failure("recorded traces", (), ending_of(error))
        raise
    files.write(report)
    colour = console.has_colour() and not files.takes_stdout
    text = f"{render_histories(histories)}\n{render_verdict(report, colour=colour)}"
    (console.print_error if files.takes_stdout else console.print)(text)
    return ExitCode.COULD_NOT_RUN if files.failed else report.exit_code()


def compared_renderers(old: "Report") -> "Mapping[str, Callable[[Report], str]]":
    """What writes the files of a report; page and Markdown have what changed since an older one."""
    from fencepost.conformance.cli.outputs import RENDERERS
    from fencepost.conformance.pages.markdown import to_comparison_markdown
    from fencepost.conformance.pages.overview import to_comparison_html

    return {
        **RENDERERS,
        "--html": lambda report: to_comparison_html(old, report),
        "--markdown": lambda report: to_comparison_markdown(old, report),
    }


def compared_code(old: "Report", new: "Report") -> int:
    """The exit code of a comparison."""
    from fencepost.conformance.analysis.comparison import compare_reports
    from fencepost.conformance.results import ExitCode

    return ExitCode.VIOLATION if compare_reports(old, new).is_worse else ExitCode.CONFORMANT
