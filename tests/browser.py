# SPDX-License-Identifier: Apache-2.0
"""A browser without a screen, for tests of pages: the system's Chromium, driven by Playwright.

Where there is none tests are skipped with the reason; with CI set they fail, since there it is installed.
"""

import contextlib
import os
import shutil
from pathlib import Path

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")
TIMEOUT_MILLISECONDS = 20_000  # for what takes a tenth of a second where nothing else runs
ATTEMPTS = 4
#: Screenshots are kept here, for a look at them.
SCREENSHOTS = Path(os.environ.get("SHOAL_SCREENSHOTS") or Path(__file__).resolve().parents[1] / "local" / "screenshots")


def find_browser():
    """The path of the browser; without one the test ends here."""
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    if found is None:
        reason = f"no browser: none of {', '.join(NAMES)} is on the PATH"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(f"{reason}; install one, as by: apt-get install chromium")
    return found


def playwright_timeout():
    """What Playwright raises when it has waited long enough."""
    from playwright.sync_api import TimeoutError

    return TimeoutError


@contextlib.contextmanager
def started_browser():
    """A browser that ends with the block."""
    path = find_browser()
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        # Without a sandbox: tests may run as root, and the pages are our own.
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        try:
            yield browser
        finally:
            browser.close()


class Page:
    """A file in a tab, with its charts drawn; what the console said of errors is kept."""

    def __init__(self, browser, path, *, width=1280):
        self.complaints = []
        self.tab = browser.new_page(viewport={"width": width, "height": 900})
        self.tab.on("console", lambda said: said.type in ("error", "warning") and self.complaints.append(said.text))
        self.tab.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.tab.on("request", lambda request: self.note_request(request.url))
        self.tab.set_default_timeout(TIMEOUT_MILLISECONDS)
        self.meter = self.tab.context.new_cdp_session(self.tab)
        self.meter.send("Performance.enable", {"timeDomain": "threadTicks"})
        self.tab.goto(path.as_uri())
        self.tab.wait_for_function("document.documentElement.dataset.drawnMilliseconds")

    def note_request(self, url):
        """Keep what is no part of the page: it must need nothing else."""
        if not url.startswith(("file:", "data:", "blob:")):
            self.complaints.append(f"asked for {url}")

    @property
    def busy_seconds(self):
        """The processor time that the page has taken on its main thread, whatever else the machine does."""
        metrics = self.meter.send("Performance.getMetrics")["metrics"]
        return next(metric["value"] for metric in metrics if metric["name"] == "TaskDuration")

    def ask(self, script, *arguments):
        """The value of a script."""
        return self.tab.evaluate(script, *arguments)

    @contextlib.contextmanager
    def drawn_again(self):
        """Wait, behind what the block does, until all charts are drawn anew."""
        before = self.ask("Number(document.documentElement.dataset.timesDrawn)")
        yield
        self.tab.wait_for_function(f"Number(document.documentElement.dataset.timesDrawn) > {before}")

    def count(self, selector):
        """How many elements there are."""
        return self.tab.locator(selector).count()

    def layout_of(self, chart, axis):
        """The range that an axis shows."""
        return self.ask(f"document.getElementById('plot-{chart}')._fullLayout.{axis}.range.map(Number)")

    def drag(self, chart, begin, end):
        """Drag the mouse across a chart, from one part of its width to another."""
        box = self.tab.locator(f"#plot-{chart} .nsewdrag").first
        box.scroll_into_view_if_needed()
        place = box.bounding_box()
        middle = place["y"] + place["height"] / 2
        self.tab.mouse.move(place["x"] + begin * place["width"], middle)
        self.tab.mouse.down()
        self.tab.mouse.move(place["x"] + end * place["width"], middle, steps=5)
        self.tab.mouse.up()

    def show_all(self, chart, end):
        """Double-click a chart until its axis ends there again: on a busy machine two clicks may be too far apart."""
        is_whole = f"document.getElementById('plot-{chart}')._fullLayout.xaxis.range[1] > {end} * 0.99"
        for _ in range(ATTEMPTS):
            self.tab.locator(f"#plot-{chart} .nsewdrag").first.dblclick()
            with contextlib.suppress(playwright_timeout()):
                self.tab.wait_for_function(is_whole, timeout=TIMEOUT_MILLISECONDS / ATTEMPTS)
                return
        pytest.fail(f"{chart} does not show all of itself after {ATTEMPTS} double clicks")

    def screenshot(self, name, selector="main"):
        """Keep a picture of a part of the page; return its path."""
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        path = SCREENSHOTS / f"{name}.png"
        self.tab.locator(selector).screenshot(path=str(path))
        return path
