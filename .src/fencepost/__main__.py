"""Run the command line with `python -m fencepost`."""

import sys

from fencepost.conformance.cli import main  # type: ignore[import-not-found]

if __name__ == "__main__":
    sys.exit(main())
