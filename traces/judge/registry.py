"""The protocol by which traces are judged where none is named: the only module of the judge's engine that names one."""

from collections.abc import Callable
from typing import TypeAlias

from fencepost.traces.events import Header
from fencepost.traces.judge.classic.protocol import ClassicProtocol
from fencepost.traces.judge.groups.judged_protocol import JudgedProtocol

MakeProtocol: TypeAlias = Callable[[Header], JudgedProtocol]
"""Makes the reader of a trace from its header."""
DEFAULT_PROTOCOL: MakeProtocol = ClassicProtocol
