"""The links of a site of HTML pages."""

import os
import re
from collections.abc import Collection, Iterator, Mapping
from html import unescape
from urllib.parse import unquote, urlsplit

LINK = re.compile(r"""<(?:a|link|img|script|object)\b[^>]*?\b(?:href|src|data)=["']?([^"' >]+)""")
ID = re.compile(r"""\b(?:id|name)=["']?([^"' >]+)""")


def find_broken_links(pages: Mapping[str, str], files: Collection[str]) -> Iterator[str]:
    """The links of pages, by their paths, that lead neither to a file of the site nor to a place in a page; links to
    other hosts are not followed."""
    ids = {name: {unescape(id) for id in ID.findall(text)} for name, text in pages.items()}
    known = {*files, *pages}
    for name, text in pages.items():
        for target in {unescape(found) for found in LINK.findall(text)}:
            parts = urlsplit(target)
            if parts.scheme or parts.netloc:
                continue
            path = unquote(parts.path)
            place = os.path.normpath(os.path.join(os.path.dirname(name), path)) if path else name
            if path.endswith("/") or place in (".", "") or f"{place}/index.html" in known:
                place = os.path.normpath(os.path.join(place, "index.html"))
            if place not in known or (parts.fragment and place in ids and unquote(parts.fragment) not in ids[place]):
                yield f"{name}: {target}"
