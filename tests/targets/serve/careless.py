"""The bundled coordinator as a server that loses acknowledged records: a kill shows the loss.

Like broker.py, and $FENCEPOST_LOSES names the kinds of records that do not get to its log.
"""

import os
import sys
from collections.abc import Sequence

from fencepost.adapters.classic.log import FileLog
from fencepost.adapters.classic.records import Record
from tests.targets.serve import broker


def main() -> int:
    """As `broker.main`."""
    lost = os.environ.get("FENCEPOST_LOSES", "").split()
    append = FileLog.append

    def drop(log: FileLog, batch: Sequence[Record]) -> None:
        append(log, [record for record in batch if type(record).__name__ not in lost])

    FileLog.append = drop  # type: ignore[assignment,method-assign]
    broker.HOST_MODULE = "tests.targets.serve.careless"
    return broker.main()


if __name__ == "__main__":
    sys.exit(main())
