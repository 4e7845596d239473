"""The console script `fencepost`: it runs `fencepost.conformance.cli`, and handles signals at its start and its end."""

import sys


def main() -> int:
    """Run the command line of this process and return its exit code, also if a signal comes while it starts or ends."""
    try:
        from fencepost.conformance import cli

        code = cli.main()
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
