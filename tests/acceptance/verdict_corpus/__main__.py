"""python -m tests.acceptance.verdict_corpus: see `compare.main`."""

import sys

from tests.acceptance.verdict_corpus.compare import main

if __name__ == "__main__":
    sys.exit(main())
