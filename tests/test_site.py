# SPDX-License-Identifier: Apache-2.0
"""The documentation site: it builds without a warning, needs nobody else to be read, and says what is so."""

import ast
import contextlib
import html
import inspect
import io
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import shoal
from browser import started_browser

pytestmark = pytest.mark.host_only("about the documentation, whose pictures and pages name their devices")

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
#: Of a graph that is drawn at once; of 2**6 vertices, eight devices have eight each.
SMALL = 6
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The built site; any warning fails the build."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    built = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300)
    assert built.returncode == 0, built.stderr
    return folder


def test_every_page_is_built(site):
    sources = {path.relative_to(DOCS).with_suffix(".html") for path in DOCS.rglob("*.md")}
    assert {path for path in sources if not (site / path).is_file()} == set()
    assert (site / "architecture.html").is_file()
    assert not (site / "site").exists()  # what builds it is no part of it


def test_nothing_is_fetched_from_elsewhere(site):
    """Scripts, styles, fonts and pictures are the site's own; links may lead away."""
    for path in site.rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        fetched = re.findall(r"<(?:script|img|iframe|source)\b[^>]*\bsrc=[\"']?([^\"'\s>]+)", text)
        for tag in re.findall(r"<link\b[^>]*>", text):
            if re.search(r"rel=[\"']?(stylesheet|icon|preconnect|preload)", tag):
                fetched += re.findall(r"href=[\"']?([^\"'\s>]+)", tag)
        assert [url for url in fetched if "//" in url] == [], path.name


@pytest.mark.parametrize("width", [390, 1280])
def test_site_is_read_from_a_disk_without_a_network(site, width):
    """In a browser: pages are as wide as the window, pictures are drawn, the search finds, and nothing is asked for."""
    complaints = []
    with started_browser() as browser:
        tab = browser.new_page(viewport={"width": width, "height": 900})
        tab.on("console", lambda said: said.type == "error" and complaints.append(said.text))
        tab.on("pageerror", lambda error: complaints.append(str(error)))
        tab.on("request", lambda request: request.url.startswith("http") and complaints.append(request.url))
        for page in ("index", "choosing", "ideas/direction"):
            tab.goto((site / f"{page}.html").as_uri())
            assert tab.evaluate("document.documentElement.scrollWidth") <= width, page
        assert tab.evaluate("[...document.querySelectorAll('article img')].map(i => i.naturalWidth > 0)") == [True]
        tab.click("label[for=__search].md-header__button" if width < 1000 else ".md-search__input")
        tab.wait_for_function("document.activeElement.matches('.md-search__input')")
        tab.keyboard.type("butterfly")
        first = "document.querySelector('.md-search-result__link')"
        tab.wait_for_function(
            f"{first}?.innerText.toLowerCase().includes('butterfly')"
        )  # what was typed first finds more
    assert complaints == []


@pytest.fixture(scope="module")
def reference(site):
    """What the reference says of each name, as plain text, up to the next one."""
    text = (site / "api.html").read_text(encoding="utf-8")
    found = {}
    for section in re.split(r"(?=<h[1-6] id=)", text):
        if name := re.match(r'<h[1-6] id="(shoal[\w.]*)"', section):
            found[name[1]] = plain(section)
    return found


def plain(markup):
    """Text without tags, and without what Markdown takes for marks."""
    return " ".join(html.unescape(re.sub(r"<[^>]+>", "", markup)).replace("`", "").split())


@pytest.mark.parametrize("name", shoal.__all__)
def test_every_public_name_is_in_the_reference(name, reference):
    """A function whose module has its name is listed by its full path: else the module is what is shown."""
    public = getattr(shoal, name)
    words = reference.get(f"shoal.{name}") or reference.get(f"{getattr(public, '__module__', '')}.{name}")
    assert words is not None, f"docs/api.md needs a line ::: shoal.{name}"
    if inspect.isroutine(public) or inspect.isclass(public):
        assert plain(inspect.getdoc(public).splitlines()[0]) in words


def test_words_behind_a_parameter_are_read_as_its_description(reference):
    words = reference["shoal.algorithms.sssp.sssp"]
    assert re.search(r"cutoff \([^)]*\) – do not go farther than this distance", words)
    assert re.search(r"do_b \(float, default: 0\.1 \) – turn from push", reference["shoal.RunConfig"])


def steps():
    """The tutorial's blocks, each with what the page says that it prints."""
    page = (DOCS / "tutorial.md").read_text(encoding="utf-8")
    found = re.findall(r"^```python\n(.*?)^```\n+```text\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert len(found) == page.count("```python")
    return found


def test_tutorial_prints_what_it_says(tmp_path):
    names = {}
    for number, (code, expected) in enumerate(steps(), 1):
        script = tmp_path / f"step_{number}.py"  # a file, since rules are compiled from their source
        script.write_text(code, encoding="utf-8")
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, str(script), "exec"), names)
        assert printed.getvalue() == expected, f"step {number}"


def messages():
    """What the page about errors quotes in its headings."""
    page = (DOCS / "troubleshooting.md").read_text(encoding="utf-8")
    return re.findall(r"^### `(.+)`$", page, re.MULTILINE)


@pytest.fixture(scope="module")
def texts():
    """All texts of the package, with … for what is filled in."""
    found = []
    for path in Path(shoal.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.JoinedStr):
                found.append("".join(part.value if isinstance(part, ast.Constant) else "…" for part in node.values))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.append(node.value)
    return found


@pytest.mark.parametrize("message", messages())
def test_quoted_message_is_one_of_the_source(message, texts):
    pattern = re.compile(".*".join(re.escape(part) for part in message.split("…")), re.DOTALL)
    assert any(pattern.search(text) for text in texts)


def test_errors_of_every_kind_are_quoted():
    assert len(messages()) > 30
    assert len(set(messages())) == len(messages())


@pytest.fixture(scope="module")
def pictures():
    """The module that draws, which finds its neighbour beside it."""
    sys.path.insert(0, str(DOCS / "site"))
    try:
        import pictures
    finally:
        sys.path.pop(0)
    return pictures


def names_of_pictures():
    return sorted(path.stem for path in (DOCS / "pictures").glob("*.svg"))


@pytest.mark.parametrize("name", names_of_pictures())
def test_picture_can_be_drawn_anew(name, pictures):
    """At a small size the script draws the same kind of picture that the page shows."""
    from xml.etree import ElementTree

    kept = ElementTree.fromstring((DOCS / "pictures" / f"{name}.svg").read_text(encoding="utf-8"))
    drawn = ElementTree.fromstring(pictures.PICTURES[name](SMALL))
    assert kept.find(f"{SVG}title").text == drawn.find(f"{SVG}title").text
    assert {element.tag for element in kept.iter()} == {element.tag for element in drawn.iter()}
    left, _, width, _ = map(float, drawn.get("viewBox").split())
    for bar in drawn.iter(f"{SVG}rect"):
        assert left <= float(bar.get("x")) <= float(bar.get("x")) + float(bar.get("width")) <= width


def test_every_picture_is_kept_and_shown(pictures):
    assert set(pictures.PICTURES) == set(names_of_pictures())
    pages = "".join(path.read_text(encoding="utf-8") for path in (DOCS / "ideas").glob("*.md"))
    assert [name for name in pictures.PICTURES if f"](../pictures/{name}.svg)" not in pages] == []


@pytest.mark.parametrize("name", ["butterfly", "fanout", "groups"])
def test_picture_that_needs_no_run_is_the_kept_one(name, pictures):
    assert pictures.PICTURES[name](pictures.SCALE) == (DOCS / "pictures" / f"{name}.svg").read_text(encoding="utf-8")


def test_decision_of_the_picture_is_sooner(pictures):
    decision = pictures.decide(SMALL)
    assert decision.stolen_edges > 0
    assert decision.seconds_after < decision.seconds_before
