# SPDX-License-Identifier: Apache-2.0
"""What the site has beside the pages in docs/: pages of other folders, with links that hold in both places.

A link in the repository leads from file to file, so that it can be followed there.  In the site these files are pages
like all others, under names of their own.
"""

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[2]
#: Files that are not in docs/, and what the site calls them.
PAGES = {
    "ARCHITECTURE.md": "architecture.md",
    "CHANGELOG.md": "changelog.md",
    "benchmarks/README.md": "benchmarks.md",
}
#: The site's front page is another than the repository's; where links into sections of that one lead.
FRONT_PAGE = "README.md"
SECTIONS = {"": "index.md", "#a-program-of-your-own": "tutorial.md"}
_LINK = re.compile(r"\]\(([^)#\s:]+)(#[^)\s]*)?\)")


def on_files(files: Files, config: Any) -> Files:
    """Add the pages of other folders."""
    for source, target in PAGES.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        files.append(File.generated(config, target, content=relink(text, source, target)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Let links that leave docs/ lead to the site's pages."""
    target = page.file.src_uri
    return markdown if target in PAGES.values() else relink(markdown, f"docs/{target}", target)


def relink(text: str, source: str, target: str) -> str:
    """Return a page's text with links that lead from where the site has it, not from its file."""

    def follow(link: re.Match[str]) -> str:
        file = posixpath.normpath(posixpath.join(posixpath.dirname(source), link[1]))
        uri, anchor = _place_of(file, link[2] or "")
        if uri is None:  # no page of the site
            return link[0]
        return f"]({posixpath.relpath(uri, posixpath.dirname(target) or '.')}{anchor})"

    return _LINK.sub(follow, text)


def _place_of(file: str, anchor: str) -> tuple[str | None, str]:
    """Return a file's place in the site, and where in it."""
    if file == FRONT_PAGE:
        return SECTIONS.get(anchor, SECTIONS[""]), ""
    if file.startswith("docs/"):
        return file.removeprefix("docs/"), anchor
    return PAGES.get(file), anchor
