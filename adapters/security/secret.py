"""Secrets: texts that are sent to a broker and shown nowhere else."""

HIDDEN = "<hidden>"


class Secret:
    """A text that has no readable form besides `reveal`."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """The text itself."""
        return self._text

    def hide_in(self, text: str) -> str:
        """`text` without the secret, which a broker may repeat in its error messages."""
        return text.replace(self._text, HIDDEN) if self._text else text

    def __repr__(self) -> str:
        return HIDDEN
