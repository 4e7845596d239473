"""`fencepost registry`: committed reports in; checks, a site, or the same runs again out."""

import argparse
from pathlib import Path

from fencepost.conformance.cli.console import Console


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `fencepost registry check`, `build` and `reproduce`."""
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    check = actions.add_parser("check", help="check entries, before they are committed and after", allow_abbrev=False)
    check.set_defaults(act=check_registry)
    build = actions.add_parser("build", help="make the site of a registry", allow_abbrev=False)
    build.set_defaults(act=build_registry)
    build.add_argument("-o", "--output", metavar="DIR", type=Path, required=True, help="the folder of the site")
    again = actions.add_parser("reproduce", help="run the plan of an entry again and compare", allow_abbrev=False)
    again.set_defaults(act=reproduce_entry)
    again.add_argument("--target", metavar="TARGET", help="run it on this target (default: that of its profile)")
    for each in (check, build, again):
        each.add_argument("path", metavar="PATH", type=Path, help="a registry, or a folder in it")
    check.epilog = "The exit code is 1 if something is wrong with an entry."
    again.epilog = "The exit code is 1 if a requirement is decided otherwise."


def run(options: argparse.Namespace, console: Console) -> int:
    """Do what the action says."""
    act = options.act
    code: int = act(options, console)
    return code


def check_registry(options: argparse.Namespace, console: Console) -> int:
    """Check all entries and print a line for each problem."""
    from fencepost.conformance.registry.checks import find_problems
    from fencepost.conformance.registry.entries import RegistryError, find_entries, read_entry
    from fencepost.conformance.results import ExitCode

    folders, problems = find_entries(options.path), 0
    for folder in folders:
        try:
            found = list(find_problems(read_entry(folder)))
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
    from fencepost.conformance.registry.entries import read_entries
    from fencepost.conformance.registry.site import build_site
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
    from fencepost.conformance.cli.interruption import run_interruptible
    from fencepost.conformance.cli.usage import UsageError
    from fencepost.conformance.registry.entries import find_entries, read_entry
    from fencepost.conformance.registry.reproduce import find_differences, plan_again
    from fencepost.conformance.reports.text import outcome_line
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
