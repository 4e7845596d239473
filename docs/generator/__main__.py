"""Build the site: `python -m docs.generator -o site`, with the extra `docs`; `--pages-only` needs no site generator."""

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Mapping
from pathlib import Path

from docs.generator.pages import make_pages
from fencepost import __version__

DOCS = Path(__file__).parents[1]


def write_pages(folder: Path) -> int:
    """Write the configuration and all pages into a folder; returns the number of pages."""
    pages = make_pages(DOCS, public_addresses().get("Repository", ""))
    for name, text in pages.items():
        path = folder / "docs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    settings = add_addresses((DOCS / "zensical.toml").read_text(encoding="utf-8"), public_addresses())
    (folder / "zensical.toml").write_text(settings.replace("{version}", __version__), encoding="utf-8")
    shutil.copy(DOCS / "pictures.css", folder / "docs" / "pictures.css")
    return sum(name.endswith(".md") for name in pages)


def public_addresses() -> dict[str, str]:
    """The addresses of pyproject.toml by their names, such as "Documentation"."""
    settings = tomllib.loads((DOCS.parent / "pyproject.toml").read_text(encoding="utf-8"))
    return dict(settings["project"]["urls"])


def add_addresses(settings: str, addresses: Mapping[str, str]) -> str:
    """The settings of the site with its own address and that of its code, as far as there are any."""
    keys = {"site_url": addresses.get("Documentation"), "repo_url": addresses.get("Repository")}
    lines = "".join(f'{key} = "{address}"\n' for key, address in keys.items() if address)
    return settings.replace("[project]\n", f"[project]\n{lines}", 1)


def mend_page(text: str) -> str:
    """A page without two attributes of the theme that HTML does not allow where they stand."""
    text = re.sub(r'(<input class="md-toggle"[^>]*) autocomplete="off"', r"\1", text)
    return re.sub(r'(<label class="md-overlay"[^>]*) aria-hidden="true"', r"\1", text)


def main() -> int:
    """Build the site, or its pages; returns the exit code of the site generator, which finds broken links."""
    parser = argparse.ArgumentParser(prog="python -m docs.generator", description=__doc__)
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="DIR", help="where the site goes")
    parser.add_argument("--pages-only", action="store_true", help="write the Markdown, and build no site")
    options = parser.parse_args()
    if options.output.exists() and any(options.output.iterdir()):
        parser.error(f"{options.output} is not empty; name a new folder")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        count = write_pages(folder)
        made = folder
        if not options.pages_only:
            command = [sys.executable, "-m", "zensical", "build", "--strict", "-f", str(folder / "zensical.toml")]
            built = subprocess.run(command, cwd=folder, check=False)
            if built.returncode:
                return built.returncode
            made = folder / "site"
            for page in made.rglob("*.html"):
                page.write_text(mend_page(page.read_text(encoding="utf-8")), encoding="utf-8")
        shutil.copytree(made, options.output, dirs_exist_ok=True)
    print(f"{count} pages in {options.output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
