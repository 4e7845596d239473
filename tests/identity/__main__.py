"""python -m tests.identity: see `compare.main`."""

import sys

from tests.identity.compare import main

if __name__ == "__main__":
    sys.exit(main())
