"""The console script `fencepost`: rejects a mistyped target at once, and else runs `fencepost.conformance.cli`."""

import sys

_BUNDLED = "bundled"


def main() -> int:
    """Run the command line of this process and return its exit code, also if a signal comes while it starts or ends."""
    try:
        code = run_arguments(sys.argv[1:])
    except KeyboardInterrupt:
        if sys.stderr is not None:
            print("fencepost: interrupted before anything was judged", file=sys.stderr)
        code = 3
    import os
    import signal

    # Python ends itself by SIGINT, whatever the exit code, if Ctrl-C came in the last `exec`, such as that of a
    # dataclass which is imported. This one is the last.
    exec("")
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, lambda number, frame: os._exit(code))
    return code


def run_arguments(arguments: list[str]) -> int:
    """Run the command line with these arguments and return its exit code."""
    if (mistyped := find_mistyped_target(arguments)) is not None:
        reason = f"{mistyped!r} is no target: write bundled, host:port, kafka://host:port or kafka+ssl://host:port"
        print(f"fencepost: {reason}", file=sys.stderr)
        return 2
    from fencepost.conformance.cli import main as run

    return run(arguments)


def find_mistyped_target(arguments: list[str]) -> str | None:
    """The TARGET of `fencepost test TARGET ...` if it cannot be one, else None; None also where help is asked for, and
    for a TARGET that may hold a password, which is not to be repeated."""
    if len(arguments) < 2 or arguments[0] != "test" or {"-h", "--help"} & {*arguments}:
        return None
    target = arguments[1]
    return None if ":" in target or target == _BUNDLED or target.startswith("-") or "@" in target else target
