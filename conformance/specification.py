"""The specification of a run or report that names none: the only module of this package that names a protocol."""

from fencepost.model.classic.rules.specification import CLASSIC

DEFAULT_SPECIFICATION = CLASSIC
