"""The protocol that is tested where none is named."""

from fencepost.conformance.protocols.classic import CLASSIC

DEFAULT_PROTOCOL = CLASSIC
