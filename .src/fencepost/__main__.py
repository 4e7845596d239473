"""The command line as `python -m fencepost`, and of the one-file kit, which old Pythons must be able to read."""

import sys

if sys.version_info < (3, 11):  # noqa: UP036
    sys.stderr.write("fencepost: needs Python 3.11 or newer, and this is Python %d.%d\n" % sys.version_info[:2])
    sys.exit(2)

if __name__ == "__main__":
    from fencepost._command import main

    sys.exit(main())
