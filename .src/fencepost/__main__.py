"""Run the command line with `python -m fencepost`."""

import sys

from fencepost.conformance.cli import main

if __name__ == "__main__":
    sys.exit(main())
