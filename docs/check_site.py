"""Finds what is wrong with a built site: broken links, what is loaded from elsewhere, lost stars.

    python docs/check_site.py site

A link to another site is fine, a font, script, style or picture from one is not: the site must be
whole without a network. Two ||w||_* in a paragraph of Markdown are read as emphasis,
unless both signs are escaped.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

_LOADED_LINKS = {"stylesheet", "icon", "preload", "prefetch", "modulepreload", "manifest"}
_FROM_CSS = re.compile(r"""(?:url\(\s*|@import\s+)["']?([^"')\s]+)""")


@dataclass
class Page(HTMLParser):
    """Everything that a page points to."""

    text: str
    ids: set[str] = field(default_factory=set)
    links: list[str] = field(default_factory=list)
    loaded: list[str] = field(default_factory=list)
    emphasised: list[str] = field(default_factory=list)
    _in_emphasis: bool = False

    def __post_init__(self) -> None:
        super().__init__()
        self.feed(self.text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Called by the parser."""
        given = {name: value or "" for name, value in attrs}
        self._in_emphasis = self._in_emphasis or tag == "em"
        if "id" in given:
            self.ids.add(given["id"])
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        elif tag == "link" and _LOADED_LINKS & set(given.get("rel", "").split()):
            self.loaded.append(given.get("href", ""))
        for name in ("src", "poster", "data"):
            if tag != "a" and given.get(name):
                self.loaded.append(given[name])
        self.loaded += [part.split()[0] for part in given.get("srcset", "").split(",") if part]
        self.loaded += _FROM_CSS.findall(given.get("style", ""))

    def handle_endtag(self, tag: str) -> None:
        """Called by the parser."""
        self._in_emphasis = self._in_emphasis and tag != "em"

    def handle_data(self, data: str) -> None:
        """Called by the parser."""
        if self._in_emphasis:
            self.emphasised.append(data)


def faults(site: Path) -> list[str]:
    """All that is wrong, one line each."""
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}
    found = [] if pages else [f"{site}: there is no page"]
    for path, page in pages.items():
        name = path.relative_to(site)
        found += [f"{name}: {fault}" for fault in _page_faults(path, page, pages)]
    for path in sorted(site.rglob("*.css")):
        for target in _FROM_CSS.findall(path.read_text(encoding="utf-8")):
            if _is_elsewhere(target):
                found.append(f"{path.relative_to(site)}: loads {target}")
    return found


def _page_faults(path: Path, page: Page, pages: dict[Path, Page]) -> list[str]:
    found = [f"emphasis: {text!r}; escape _ and *" for text in page.emphasised if "||" in text]
    for target in page.loaded:
        if _is_elsewhere(target):
            found.append(f"loads {target}")
        elif not target.startswith("data:") and not _file_of(path, target).exists():
            found.append(f"lacks {target}")
    for target in page.links:
        if urlsplit(target).scheme or target.startswith("//"):
            continue
        file, anchor = _file_of(path, target), unquote(urlsplit(target).fragment)
        if not file.is_file():
            found.append(f"links to {target}, which is not there")
        elif anchor and file in pages and anchor not in pages[file].ids:
            found.append(f"links to {target}: no such place on that page")
    return found


def _is_elsewhere(target: str) -> bool:
    return target.startswith("//") or urlsplit(target).scheme in ("http", "https")


def _file_of(page: Path, target: str) -> Path:
    """The file that a relative address means; the page itself if it is an anchor only."""
    path = unquote(urlsplit(target).path)
    return (page.parent / path).resolve() if path else page


def main(site: Path) -> int:
    """Print the faults; 1 if there are any."""
    found = faults(site.resolve())
    sys.stdout.writelines(f"{fault}\n" for fault in found)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
