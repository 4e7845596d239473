"""The console script `fencepost` around `fencepost.conformance.cli`: what signals do while it starts and ends."""

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
