"""The command line as `python -m fencepost`."""

import sys

from fencepost._command import main

if __name__ == "__main__":
    sys.exit(main())
