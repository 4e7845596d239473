"""Thresholds of pages in a real browser: they fit a phone, labels do not overlap, texts are legible, nothing leaves.

It needs Chromium (on Debian: `apt install chromium`), and Node for axe, which looks for faults of accessibility. With
the environment variable FENCEPOST_PICTURES, what the pages look like is kept in that folder.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Any

from tests.acceptance.framework import ROOT, Check, Figure, MeasurementError, at_least, at_most, exactly
from tests.acceptance.runs import command_environment
from tests.support.faulty_coordinators import FORGIVING
from tests.targets.clients.builds import find, install_modules

DATA = ROOT / "tests" / "traces" / "data"
REGISTRY = ROOT / "docs" / "registry"
WIDTHS = {"phone": 500, "desktop": 1280}
"""Of windows, in pixels: the browser makes none that is narrower than 500."""
HEIGHT = 1_000
SCHEMES = {"light": 1, "dark": 0}
MIN_CONTRAST = 4.5
"""Of text on its background: level AA of the Web Content Accessibility Guidelines."""
MAX_PAGE_BYTES = 1_500_000
QUIET = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--enable-logging=stderr"),
)
SCRIPT = """
<script>
for (const each of document.querySelectorAll("details")) each.open = true;
function boxes(svg) {
  const shown = [...svg.querySelectorAll("text")].filter(t => getComputedStyle(t).visibility !== "hidden");
  return shown.map(t => t.getBoundingClientRect()).filter(b => b.width > 0);
}
let overlaps = 0;
for (const svg of document.querySelectorAll("svg")) {
  const found = boxes(svg);
  for (let i = 0; i < found.length; i++) for (let j = i + 1; j < found.length; j++) {
    const a = found[i], b = found[j];
    const w = Math.min(a.right, b.right) - Math.max(a.left, b.left);
    const h = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
    if (w > 2 && h > 4) overlaps++;
  }
}
function channel(c) { c /= 255; return c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4; }
function luminance(rgb) { return 0.2126 * channel(rgb[0]) + 0.7152 * channel(rgb[1]) + 0.0722 * channel(rgb[2]); }
function parts(colour) {
  const found = colour.match(/[\\d.]+/g).map(Number);
  return colour.startsWith("color(") ? found.map((each, place) => (place < 3 ? 255 * each : each)) : found;
}
function background(node) {
  let mixed = [0, 0, 0], left = 1;
  const page = matchMedia("(prefers-color-scheme: dark)").matches ? [18, 18, 18] : [255, 255, 255];
  for (; node && left > 0; node = node.parentElement) {
    const rgb = parts(getComputedStyle(node).backgroundColor), share = rgb.length < 4 ? 1 : rgb[3];
    mixed = mixed.map((each, place) => each + left * share * rgb[place]);
    left *= 1 - share;
  }
  return mixed.map((each, place) => each + left * page[place]);
}
let contrast = 21;
const walker = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const parent = walker.currentNode.parentElement;
  if (!walker.currentNode.textContent.trim() || parent.closest("svg, script")) continue;
  const [a, b] = [luminance(parts(getComputedStyle(parent).color)), luminance(background(parent))];
  contrast = Math.min(contrast, (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05));
}
const unnamed = [...document.querySelectorAll("svg:not(svg svg)")].filter(each => !each.querySelector("title")).length;
const stuck = [...document.querySelectorAll(".scroll")].filter(
  each => each.scrollWidth > each.clientWidth && each.tabIndex < 0).length;
const measured = {
  sideways: document.documentElement.scrollWidth - document.documentElement.clientWidth,
  overlaps, contrast, unnamed, stuck, drawings: document.querySelectorAll("svg").length,
  loaded: performance.getEntriesByType("resource").length,
  dark: matchMedia("(prefers-color-scheme: dark)").matches,
};
const out = document.createElement("pre");
out.id = "measured";
out.textContent = JSON.stringify(measured);
document.body.append(out);
</script>
"""
"""Opens every fold and writes what it measures to the end of the page."""


def make_pages(folder: Path) -> dict[str, Path]:
    """A page of a report with violations, that of librdkafka's mock, and the pages of a capture and of a log."""
    from fencepost import run
    from fencepost.adapters.in_process import InProcessTarget
    from fencepost.conformance.reports.json_report import from_json
    from fencepost.conformance.reports.report import to_html
    from fencepost.conformance.run.bundled import BUNDLED_SETTINGS

    pages = {name: folder / f"{name}.html" for name in ("report", "mock", "capture", "log")}
    report = run(InProcessTarget(BUNDLED_SETTINGS, make_coordinator=FORGIVING), schedules=20)
    pages["report"].write_text(to_html(report), encoding="utf-8")
    (mock,) = REGISTRY.glob("coordinators/librdkafka-mock/*/report.json")
    pages["mock"].write_text(to_html(from_json(mock.read_text(encoding="utf-8"))), encoding="utf-8")
    for kind, source in (("capture", "kafka.pcap"), ("log", "kafka-4.log")):
        trace = folder / f"{kind}.jsonl"
        run_kit("import", kind, str(DATA / source), "-o", str(trace))
        run_kit("report", str(trace), "--html", str(pages[kind]))
    return pages


def run_kit(*words: str) -> None:
    """Run a command of the kit. Raises `MeasurementError` if it fails."""
    command = [sys.executable, "-m", "fencepost", *words]
    done = subprocess.run(command, cwd=ROOT, env=command_environment(), capture_output=True, text=True)
    if done.returncode:
        raise MeasurementError(f"{' '.join(words)}: {done.stderr.strip()}")


def find_browser() -> str:
    """The path of the browser. Raises `MeasurementError`."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if browser is None:
        raise MeasurementError("chromium: not found; on Debian: apt install chromium")
    return browser


def open_page(page: Path, width: int, scheme: int) -> tuple[dict[str, Any], list[str]]:
    """The measurements of the script on a page, and the browser's errors: a request that the page's policy
    forbids is one."""
    browser = find_browser()
    measured = page.with_suffix(".measured.html")
    measured.write_text(page.read_text(encoding="utf-8").replace("</body>", f"{SCRIPT}</body>"), encoding="utf-8")
    options = [f"--window-size={width},{HEIGHT}", f"--blink-settings=preferredColorScheme={scheme}"]
    options += [f"--user-data-dir={page.parent / 'browser'}", "--dump-dom"]
    command = [browser, *QUIET, *options, measured.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    found = re.search(r'<pre id="measured">(.*?)</pre>', done.stdout)
    if found is None:
        raise MeasurementError(f"{page.name}: the browser shows no page: {done.stderr[-300:]}")
    errors = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    return json.loads(found[1]), errors


def measure_pages(folder: Path) -> Iterator[Figure]:
    """The pages on a phone and on a desktop, light and dark."""
    for name, page in make_pages(folder).items():
        yield at_most(f"{name}: bytes", page.stat().st_size, MAX_PAGE_BYTES)
        for (device, width), (look, scheme) in product(WIDTHS.items(), SCHEMES.items()):
            measured, errors = open_page(page, width, scheme)
            place = f"{name}, {device}, {look}"
            yield exactly(f"{place}: is shown so", str(measured["dark"]), str(look == "dark"))
            yield at_least(f"{place}: drawings", measured["drawings"], 1)
            yield exactly(f"{place}: pixels that the page is too wide", measured["sideways"], 0)
            yield exactly(f"{place}: labels of drawings that overlap", measured["overlaps"], 0)
            yield at_least(f"{place}: lowest contrast of a text", round(measured["contrast"], 2), MIN_CONTRAST)
            yield exactly(f"{place}: drawings without a text for screen readers", measured["unnamed"], 0)
            yield exactly(f"{place}: boxes that scroll and cannot be reached by keyboard", measured["stuck"], 0)
            yield exactly(f"{place}: errors in the console", len(errors), 0)
            yield exactly(f"{place}: things that the page loads", measured["loaded"], 0)


# --- faults of accessibility, controls, and pictures

LOOK = ROOT / "tests" / "targets" / "browser"
LOOKS = 6
"""Three widths, light and dark."""
SERIOUS = ("serious", "critical")
CONTROLS: dict[str, dict[str, Any]] = {
    "report": {"filtered": True, "shown": True},
    "log": {"filtered": True, "shown": True, "zoomed": 4, "asked": True, "around": True},
}
"""What the buttons and fields of a page do."""


def make_site(folder: Path) -> dict[str, Path]:
    """Pages of the registry's site, as files by their names."""
    from fencepost.conformance.reports.registry import read_entries
    from fencepost.conformance.reports.registry_site import build_site

    site = build_site(list(read_entries(REGISTRY)))
    shown = {
        "matrix": "index.html",
        "kfake": "coordinators/kfake/index.html",
        "requirement": "requirements/JOIN-37.html",
    }
    pages = {name: folder / f"{name}.html" for name in shown}
    for name, path in shown.items():
        pages[name].write_text(site[path], encoding="utf-8")
    return pages


DOCUMENTS = {
    "home": "",
    "doors": "tutorials/doors/",
    "pictures": "tutorials/pictures/",
    "pytest": "how-to/pytest/",
    "kafka": "explanation/kafka/",
    "catalogue": "reference/catalogue/",
    "documented": "reference/catalogue/JOIN-37/",
    "command": "reference/commands/test/",
}
"""Pages of the documents' site: one of each kind."""


def make_documents(folder: Path) -> dict[str, Path]:
    """Pages of the documents' site, by their names."""
    site = folder / "documents"
    command = [sys.executable, "-m", "docs.generator", "-o", str(site)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        raise MeasurementError(done.stderr[-1_000:])
    return {name: site / path / "index.html" for name, path in DOCUMENTS.items()}


def look_at(pages: Mapping[str, Path], folder: Path) -> Iterator[dict[str, Any]]:
    """What a browser finds on pages at each width, light and dark; pictures of them are in the folder."""
    modules = install_modules("browser", LOOK)
    words = [find("node", "Node 20 or newer"), str(LOOK / "look.mjs"), str(modules), find_browser(), str(folder)]
    named = [f"{name}={page}" for name, page in pages.items()]
    done = subprocess.run([*words, *named], capture_output=True, text=True, timeout=1_800)
    if done.returncode:
        raise MeasurementError(done.stderr[-1_000:])
    yield from map(json.loads, done.stdout.splitlines())


def measure_looks(folder: Path) -> Iterator[Figure]:
    """Reports, an incident, the registry and the documents at 390, 768 and 1280 pixels, light, dark and printed."""
    pictures = Path(os.environ.get("FENCEPOST_PICTURES", folder))
    pictures.mkdir(parents=True, exist_ok=True)
    pages = {**make_pages(folder), **make_site(folder), **make_documents(folder)}
    used: dict[str, dict[str, Any]] = {}
    looks = 0
    for found in look_at(pages, pictures):
        looks += 1
        serious = [each for each in found["faults"] if each["impact"] in SERIOUS]
        told = ", ".join(f"{each['id']} at {each['first']}" for each in serious) or "none"
        yield exactly(f"{found['look']}: serious faults of accessibility", told, "none")
        yield exactly(f"{found['look']}: pixels that the page is too wide", max(0, found["sideways"]), 0)
        yield exactly(f"{found['look']}: errors of scripts", len(found["errors"]), 0)
        used.setdefault(found["look"].split("-")[0], {}).update(found["used"])
    yield exactly("looks at pages", looks, LOOKS * len(pages))
    for name, wanted in CONTROLS.items():
        for control, outcome in wanted.items():
            yield exactly(f"{name}: {control}", str(used[name].get(control)), str(outcome))
    yield at_least("log: marks", used["log"].get("marks", 0), 1)


CHECKS = (
    Check("pages", "Pages in a browser, on a phone and on a desktop, light and dark", measure_pages),
    Check("looks", "Pages at three widths, light, dark and printed: accessibility and controls", measure_looks),
)
