"""A page seen by a real browser: what it draws, what it complains about, whether it fits.

Chromium runs once, without a window, and prints the page as it stands after loading. The page is a
copy with a script that looks around and notes what it finds. It stands in a frame, because a window
cannot be as narrow as a phone.
"""

from __future__ import annotations

import html
import json
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--enable-logging=stderr",
    "--v=0",
)
TIMEOUT = 120  # s; a loaded machine takes ten
LEAST_WIDTH, LEAST_HEIGHT, FEWEST_SHAPES = 200.0, 80.0, 5

SCRIPT = """
const errors = [];
window.addEventListener("error", event => errors.push(
  event.message || "cannot load " + (event.target.src || event.target.href)), true);
const complain = console.error;
console.error = (...all) => { errors.push(all.join(" ")); complain(...all); };

function isDrawn(shape) {
  if (shape.closest("defs, clipPath")) return false;
  const box = shape.getBoundingClientRect();
  return box.width > 0 || box.height > 0;
}

function isIn(svg, shape) {
  const box = shape.getBoundingClientRect(), whole = svg.getBoundingClientRect();
  return box.left < whole.right && box.right > whole.left
    && box.top < whole.bottom && box.bottom > whole.top;
}

function overlaps(svg) {
  const boxes = [...svg.querySelectorAll("text")].map(
    text => [text.textContent, text.getBoundingClientRect()]);
  const whole = svg.getBoundingClientRect(), found = [];
  boxes.forEach(([name, box], place) => {
    if (box.left < whole.left - 1 || box.right > whole.right + 1) found.push([name, "the edge"]);
    boxes.slice(place + 1).forEach(([other, next]) => {
      if (box.left < next.right && next.left < box.right
        && box.top < next.bottom && next.top < box.bottom) found.push([name, other]);
    });
  });
  return found;
}

function look(svg) {
  const box = svg.getBoundingClientRect();
  const shapes = [...svg.querySelectorAll("path, use, line, rect, circle, polyline")];
  const names = [...svg.outerHTML.matchAll(/(?:url\\(|href=")#([^)"]+)/g)].map(found => found[1]);
  return {
    label: svg.getAttribute("aria-label") || "",
    width: box.width,
    height: box.height,
    shapes: shapes.filter(shape => isDrawn(shape) && isIn(svg, shape)).length,
    dangling: names.filter(name => !document.getElementById(name)),
    overlapping: overlaps(svg).map(pair => pair.join(" and ")),
  };
}

function sticksOut(element) {
  return element.getBoundingClientRect().right > window.innerWidth + 1
    && !element.closest(".scroll, svg");
}

window.addEventListener("load", () => {
  const ids = [...document.querySelectorAll("[id]")].map(element => element.id);
  const found = {
    errors,
    width: window.innerWidth,
    content: document.documentElement.scrollWidth,
    wide: [...document.body.querySelectorAll("*")].filter(sticksOut).map(each => each.tagName),
    repeated: ids.filter((id, place) => ids.indexOf(id) !== place),
    svgs: [...document.querySelectorAll("svg")].map(look),
  };
  parent.document.getElementById("findings").textContent = JSON.stringify(found);
});
"""


@dataclass(frozen=True)
class Svg:
    """An inline figure as laid out; sizes are pixels."""

    label: str
    width: float
    height: float
    shapes: int  # that have a size and lie inside the figure
    dangling: tuple[str, ...]  # ids that it refers to and the page lacks
    overlapping: tuple[str, ...]  # texts that lie on each other or beyond the figure

    @property
    def fault(self) -> str:
        """Why it cannot be called drawn; empty if it can."""
        if self.width < LEAST_WIDTH or self.height < LEAST_HEIGHT:
            return f"is only {self.width:.0f} x {self.height:.0f} pixels"
        if self.shapes < FEWEST_SHAPES:
            return f"has only {self.shapes} visible shapes"
        if self.dangling:
            return f"refers to {self.dangling[0]!r}, which is not there"
        return ""


@dataclass(frozen=True)
class Seen:
    """What the browser found on a page."""

    errors: tuple[str, ...]  # uncaught ones, console.error, what could not be loaded
    console: tuple[str, ...]  # all that was written to the console
    width: int
    content: int  # width that the page would need
    wide: tuple[str, ...]  # elements beyond the right edge that do not scroll by themselves
    repeated: tuple[str, ...]  # ids
    svgs: tuple[Svg, ...]

    @property
    def faults(self) -> list[str]:
        """Everything that is wrong, in words."""
        found = [f"error: {text}" for text in self.errors]
        found += [f"console: {text}" for text in self.console]
        found += [f"figure {svg.label!r} {svg.fault}" for svg in self.svgs if svg.fault]
        found += [f"id {name!r} is there twice" for name in self.repeated]
        if self.content > self.width:
            found.append(f"needs {self.content} pixels of {self.width}")
        return found + [f"{name} sticks out" for name in self.wide]

    @property
    def crowded(self) -> list[str]:
        """Texts of figures that lie on each other; names beside curves may have to."""
        return [f"figure {svg.label!r}: {pair}" for svg in self.svgs for pair in svg.overlapping]


def find_chromium() -> str | None:
    """The browser's command: ``$CHROMIUM``, or the first of its usual names that is there."""
    names = (os.environ.get("CHROMIUM"), *NAMES)
    return next((found for name in names if name and (found := shutil.which(name))), None)


def see(browser: str, page: str, folder: Path, width: int) -> Seen:
    """Open the page so many pixels wide; ``folder`` takes the copy and the browser's profile."""
    watched = re.sub(r"(<head[^>]*>)", lambda m: f"{m[0]}<script>{SCRIPT}</script>", page, count=1)
    if watched == page:
        raise ValueError("the page has no head")
    frame = folder / f"frame-{width}.html"
    frame.write_text(
        f'<!doctype html><meta charset="utf-8"><pre id="findings"></pre><iframe '
        f'style="width: {width}px; height: 900px; border: 0" srcdoc="{html.escape(watched)}">'
        "</iframe>",
        encoding="utf-8",
    )
    profile = folder / f"profile-{width}"
    flags = [f"--user-data-dir={profile}", f"--window-size={width + 200},1000", "--dump-dom"]
    dom, log = _run([browser, *FLAGS, *flags, frame.as_uri()])
    noted = re.search(r'<pre id="findings">(.*?)</pre>', dom, re.S)
    if noted is None or not noted[1]:
        raise AssertionError(f"the browser did not load the page:\n{dom[:500]}\n{log[-2000:]}")
    return _seen(json.loads(html.unescape(noted[1])), log)


def _seen(found: Mapping[str, object], log: str) -> Seen:
    fields = {k: tuple(v) if isinstance(v, list) else v for k, v in found.items()}
    lists = ("dangling", "overlapping")
    svgs = tuple(Svg(**each | {key: tuple(each[key]) for key in lists}) for each in found["svgs"])
    console = tuple(re.findall(r":CONSOLE[^\]]*\] (.*)", log))
    return Seen(**{**fields, "svgs": svgs, "console": console})


def _run(command: list[str]) -> tuple[str, str]:
    """What it prints; it and its children are ended if they take too long."""
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        errors="replace",
        start_new_session=True,
    )
    try:
        return process.communicate(timeout=TIMEOUT)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise
