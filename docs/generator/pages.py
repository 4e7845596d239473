"""All pages of the site by their paths: those that people wrote, with their pictures, and the generated reference."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from docs.generator import api, catalogue, commands, formats
from docs.generator.pictures import draw_picture

ROOT = Path(__file__).parents[2]
WRITTEN = ("index.md", "tutorials", "how-to", "explanation")
PICTURE = re.compile(r"\]\((?:\.\./)*pictures/([\w.-]+)\.svg\)")
BROAD = re.compile(r'(\{ style="min-width: \d+px" \})$', re.MULTILINE)
WIDTH = re.compile(r'^<svg[^>]*? width="([\d.]+)"')
"""The width of a picture in its file."""
MIN_SCALE = 0.82
"""How small a picture may be drawn for its labels of 12 pixels to be read."""
SITE_SUFFIXES = (".md", ".svg", ".json")
BESIDE = ("registry/",)
"""Folders under `docs` that are no part of the site."""
DOWNLOADS = ("examples/", "ci/")
"""Folders under `docs` whose files are on the site where a page links to them."""
LINK = re.compile(r"(!?\[[^\]\n]*(?:\n[^\]\n]*)?\])\(([^)\s]+)\)")
ROOT_PAGES = {
    "traces/FORMAT.md": "reference/trace-format.md",
    "traces/pipeline/CORPUS.md": "reference/corpus-format.md",
    "model/PROOFS.md": "explanation/proofs.md",
    "conformance/zoo/results.md": "explanation/zoo.md",
    "docs/registry/README.md": "reference/registry.md",
    "CHANGELOG.md": "reference/changelog.md",
}
"""Documents of the repository that lie beside the code, and their places on the site."""


def make_pages(docs: Path, repository: str = "") -> dict[str, str]:
    """The texts of all files of the site's source by their paths; `docs` is the folder of the written pages. These get
    a link to edit them, if there is a public `repository`."""
    pages = {name: text + edit_link(name, repository) for name, text in written_pages(docs)}
    pages |= {place: (docs.parent / name).read_text(encoding="utf-8") for name, place in ROOT_PAGES.items()}
    pages |= commands.command_pages()
    pages |= formats.format_pages()
    pages |= api.api_pages()
    pages |= catalogue.catalogue_pages(docs / "registry")
    files = downloads_of(pages, docs)
    pages = {name: resolve_links(name, text) for name, text in pages.items()}
    pictures = dict(pictures_of(pages, docs))
    return {name: keep_legible(text, pictures) for name, text in pages.items()} | pictures | files


def edit_link(name: str, repository: str) -> str:
    """The line that leads to the editor of a page in the repository."""
    return f"\n[Edit this page]({repository}/edit/main/docs/{name})\n" if repository else ""


def downloads_of(pages: Mapping[str, str], docs: Path) -> dict[str, str]:
    """The files of examples and recipes that pages link to, by their places on the site."""
    linked = {
        normalize(Path(home_of(name)).parent, target.partition("#")[0])
        for name, text in pages.items()
        for _, target in LINK.findall(text)
        if "://" not in target
    }
    places = {path: place_of(path) for path in linked if path.removeprefix("docs/").startswith(DOWNLOADS)}
    return {place: (docs.parent / path).read_text(encoding="utf-8") for path, place in places.items() if place}


def home_of(name: str) -> str:
    """The path in the repository of a page."""
    return next((root for root, place in ROOT_PAGES.items() if place == name), f"docs/{name}")


def written_pages(docs: Path) -> Iterator[tuple[str, str]]:
    """The pages that people wrote."""
    for name in WRITTEN:
        path = docs / name
        for file in sorted(path.rglob("*.md")) if path.is_dir() else [path]:
            yield file.relative_to(docs).as_posix(), file.read_text(encoding="utf-8")


def resolve_links(name: str, text: str) -> str:
    """The page with its links into the repository led to their places on the site; those without one become text."""
    if not name.endswith(".md"):
        return text
    home = home_of(name)

    def resolve(found: re.Match[str]) -> str:
        label, target = found[1], found[2]
        file, _, anchor = target.partition("#")
        if "://" in file or not file:
            return found[0]
        where = normalize(Path(home).parent, file)
        place = place_of(where)
        if not place:
            words = label.strip("![]`")
            return f"`{where}`" if words == where else f"{words} (`{where}`)"
        return f"{label}({'../' * name.count('/')}{place}{'#' + anchor if anchor else ''})"

    return LINK.sub(resolve, text)


def place_of(path: str) -> str:
    """The place on the site of a file of the repository, "" for one without."""
    if path in ROOT_PAGES:
        return ROOT_PAGES[path]
    place = path.removeprefix("docs/")
    if place.startswith(DOWNLOADS):
        return place if (ROOT / path).is_file() else ""
    on_site = place != path and place.endswith(SITE_SUFFIXES) and not place.startswith(BESIDE)
    return place if on_site else ""


def normalize(folder: Path, link: str) -> str:
    """The path from the root of the repository that a relative link leads to."""
    parts: list[str] = []
    for part in (folder / link).parts:
        if part == "..":
            del parts[-1:]
        elif part != ".":
            parts.append(part)
    return "/".join(parts)


def keep_legible(text: str, pictures: Mapping[str, str]) -> str:
    """The page with the least width of each picture: on a phone it scrolls, by the keyboard too. `pictures` are SVG
    files by their paths."""

    def add_width(found: re.Match[str]) -> str:
        width = WIDTH.search(pictures[f"pictures/{found[1]}.svg"])
        assert width is not None, found[1]
        return f'{found[0]}{{ style="min-width: {int(MIN_SCALE * float(width[1]))}px" }}'

    return BROAD.sub(r'\1\n{: tabindex="0" }', PICTURE.sub(add_width, text))


def pictures_of(pages: Mapping[str, str], docs: Path) -> Iterator[tuple[str, str]]:
    """The pictures that the pages show."""
    names = {name for text in pages.values() for name in PICTURE.findall(text)}
    for name in sorted(names):
        yield f"pictures/{name}.svg", draw_picture(name, docs)
