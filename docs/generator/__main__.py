"""Build the site: `python -m docs.generator -o site`, with the extra `docs`; `--pages-only` needs no site generator."""

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from docs.generator.pages import make_pages

DOCS = Path(__file__).parents[1]


def write_pages(folder: Path) -> int:
    """Write the configuration and all pages into a folder; returns the number of pages."""
    pages = make_pages(DOCS)
    for name, text in pages.items():
        path = folder / "docs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    shutil.copy(DOCS / "zensical.toml", folder / "zensical.toml")
    shutil.copy(DOCS / "pictures.css", folder / "docs" / "pictures.css")
    return sum(name.endswith(".md") for name in pages)


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
        shutil.copytree(made, options.output, dirs_exist_ok=True)
    print(f"{count} pages in {options.output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
