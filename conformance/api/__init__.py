"""The public Python API: the names that `import fencepost` provides.

Everything here is stable and documented; nothing here prints, exits or reads arguments. Work is done by the packages
below; commands and the pytest plugin are built on top.
"""
