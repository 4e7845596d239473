"""Mistakes in the arguments that the parser cannot see."""


class UsageError(Exception):
    """The arguments of a command do not go together; the message says which."""

    def __init__(self, command: str, message: str) -> None:
        super().__init__(message)
        self.command = command
