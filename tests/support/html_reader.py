"""Reads pages: their elements, their links, and the elements that load or run something."""

from html.parser import HTMLParser

VOID = {"meta", "input", "br"}


class HtmlReader(HTMLParser):
    """Reads a page: its elements, each closed where it should be, and its links."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.handlers: list[str] = []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        values = dict(attrs)
        self.ids += filter(None, [values.get("id")])
        self.links += filter(None, [values.get("href")])
        self.loaded += filter(None, [values.get("src")])
        self.handlers += [name for name in values if name.startswith("on")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag
