# SPDX-License-Identifier: Apache-2.0
"""Pages of runs in a browser: charts are drawn, zoom, leave devices out, and nothing complains.

A picture of every chart is kept (see `browser`), and must show something.
"""

import pytest

from browser import ATTEMPTS, Page, started_browser
from report_pages import CHARTS_OF, comparison_page, page_of

pytestmark = pytest.mark.host_only("about pages: what ran where does not matter")

#: What a chart is made of in the browser.
MARKS = {
    "timeline": ".scatterlayer path.js-line",
    "frontier": ".barlayer .point path",
    "times": ".barlayer .point path",
    "visits": ".barlayer .point path",
    "load": ".barlayer .point path",
    "bytes": ".barlayer .point path, .heatmaplayer image",
    "stealing": ".barlayer .point path",
    "memory": ".barlayer .point path",
}
DRAWN_SECONDS = 2


@pytest.fixture(scope="module")
def browser():
    with started_browser() as started:
        yield started


@pytest.fixture(scope="module")
def pages(browser, tmp_path_factory):
    """Open the page of a run by name, once."""
    opened = {}

    def open_page(name):
        if name not in opened:
            path = tmp_path_factory.mktemp("pages") / "run.html"
            path.write_text(page_of(name), encoding="utf-8")
            opened[name] = Page(browser, path)
        return opened[name]

    return open_page


CASES = [(name, chart) for name, charts in CHARTS_OF.items() for chart in charts]


@pytest.mark.parametrize("name", CHARTS_OF)
def test_the_page_has_all_its_parts(name, pages):
    page = pages(name)
    assert page.ask("[...document.querySelectorAll('main section')].map(e => e.id)") == [
        *CHARTS_OF[name], "strategies", *(["phases"] if name == "two phases" else []), "environment"
    ]  # fmt: skip
    assert page.count(".plot .plot-container") == page.count(".plot") == len(CHARTS_OF[name])
    assert page.count("#totals dd") >= 6
    assert page.count("section .caption") == page.count("section")
    assert page.count("#strategies tbody tr") >= 4
    assert page.complaints == []


@pytest.mark.parametrize(("name", "chart"), CASES, ids="-".join)
def test_every_chart_is_drawn(name, chart, pages):
    page = pages(name)
    marks = f"#plot-{chart} :is({MARKS[chart]})"
    assert page.count(marks) > 0
    sizes = page.ask("(s) => [...document.querySelectorAll(s)].map(e => e.getBoundingClientRect().width)", marks)
    assert max(sizes) > 1
    titles = page.ask(f"[...document.querySelectorAll('#plot-{chart} .g-xtitle text')].map(e => e.textContent)")
    assert all(titles)
    assert titles
    picture = page.screenshot(f"{name.replace(' ', '-')}-{chart}", f"#{chart}")
    assert len(colors_in(picture)) > 8
    assert page.complaints == []


@pytest.mark.parametrize("name", CHARTS_OF)
def test_the_timeline_zooms_and_comes_back(name, pages):
    page = pages(name)
    whole = page.layout_of("timeline", "xaxis")
    page.drag("timeline", 0.25, 0.5)
    page.tab.wait_for_function(
        f"document.getElementById('plot-timeline')._fullLayout.xaxis.range[1] < {whole[1]} * 0.9"
    )
    begin, end = page.layout_of("timeline", "xaxis")
    width = whole[1] - whole[0]
    assert begin == pytest.approx(whole[0] + width * 0.25, abs=width * 0.02)
    assert end == pytest.approx(whole[0] + width * 0.5, abs=width * 0.02)
    page.screenshot(f"{name.replace(' ', '-')}-zoomed", "#timeline")
    page.show_all("timeline", whole[1])
    assert page.layout_of("timeline", "xaxis") == pytest.approx(whole)
    assert page.complaints == []


def lanes(page):
    return sorted(page.ask("[...document.querySelectorAll('#plot-timeline .ytick text')].map(e => e.textContent)"))


def num_bars(page, chart):
    return page.count(f"#plot-{chart} .barlayer .point path")


@pytest.mark.parametrize("name", ["eight devices", "eight that steal", "asynchronous"])
def test_devices_can_be_left_out(name, pages):
    page = pages(name)
    every, load = lanes(page), num_bars(page, "load")
    first, second = every[:2]
    with page.drawn_again():
        page.tab.locator("#devices input[value='0']").uncheck()
    assert lanes(page) == every[1:]
    assert first not in lanes(page)
    assert num_bars(page, "load") == load - 2
    assert num_bars(page, "bytes") in (0, len(every) - 1)
    page.screenshot(f"{name.replace(' ', '-')}-without-device-0", "#timeline")
    with page.drawn_again():
        page.tab.locator("#devices button[value='none']").click()
    assert page.count("#plot-timeline .scatterlayer path.js-line") == 0
    with page.drawn_again():
        page.tab.locator("#devices input[value='1']").check()
    assert lanes(page) == [second]
    assert page.count("#plot-timeline .legend .traces") >= 1
    with page.drawn_again():
        page.tab.locator("#devices button[value='all']").click()
    assert lanes(page) == every
    assert num_bars(page, "load") == load
    assert page.complaints == []


def test_zoom_is_kept_when_devices_are_left_out(pages):
    page = pages("eight devices")
    whole = page.layout_of("timeline", "xaxis")
    page.drag("timeline", 0.1, 0.4)
    page.tab.wait_for_function(
        f"document.getElementById('plot-timeline')._fullLayout.xaxis.range[1] < {whole[1]} * 0.9"
    )
    near = page.layout_of("timeline", "xaxis")
    with page.drawn_again():
        page.tab.locator("#devices input[value='3']").uncheck()
    assert len(lanes(page)) == 7
    assert page.layout_of("timeline", "xaxis") == pytest.approx(near)
    with page.drawn_again():
        page.tab.locator("#devices button[value='all']").click()
    assert len(lanes(page)) == 8
    page.show_all("timeline", whole[1])


def test_no_button_sends_a_chart_elsewhere(pages):
    page = pages("one device")
    titles = page.ask("[...document.querySelectorAll('#plot-frontier .modebar-btn')].map(e => e.dataset.title)")
    assert titles == ["Download plot as a PNG", "Zoom", "Pan", "Zoom in", "Zoom out", "Show all"]
    before = page.layout_of("frontier", "xaxis")
    page.drag("frontier", 0.3, 0.6)
    page.tab.wait_for_function(f"document.getElementById('plot-frontier')._fullLayout.xaxis.range[0] > {before[0]}")
    page.tab.locator("#plot-frontier .modebar-btn[data-title='Show all']").click()
    page.tab.wait_for_function(f"document.getElementById('plot-frontier')._fullLayout.xaxis.range[0] == {before[0]}")


def test_numbers_are_told_under_the_mouse(pages):
    page = pages("eight devices")
    bar = page.tab.locator("#plot-memory .barlayer .point path").nth(2)
    bar.scroll_into_view_if_needed()
    box = bar.bounding_box()
    page.tab.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2, steps=3)
    page.tab.wait_for_function("document.querySelector('#plot-memory .hoverlayer')?.textContent.includes('device 2')")


def test_a_large_page_is_there_in_time(browser, tmp_path):
    """64 devices and 10,000 supersteps; that nothing is left out is asked in `test_report`."""
    path = tmp_path / "large.html"
    path.write_text(page_of("large"), encoding="utf-8")
    taken = []  # whatever else the machine does makes a processor's seconds longer, never shorter
    while not taken or (taken[-1] >= DRAWN_SECONDS and len(taken) < ATTEMPTS):
        page = Page(browser, path)
        taken.append(page.busy_seconds)
    assert min(taken) < DRAWN_SECONDS
    assert page.count("#plot-timeline .heatmaplayer image") == 1
    page.screenshot("large-timeline", "#timeline")
    with page.drawn_again():
        page.tab.locator("#devices input[value='0']").uncheck()
    assert page.ask("document.getElementById('plot-timeline').data[0].y.length") == 63
    assert page.complaints == []


def test_two_runs_are_drawn_side_by_side(browser, tmp_path):
    path = tmp_path / "both.html"
    path.write_text(comparison_page(), encoding="utf-8")
    page = Page(browser, path)
    for chart in ("times", "frontiers"):
        assert page.count(f"#plot-{chart} .scatterlayer path.js-line") == 2
    assert page.count("#numbers tbody tr") >= 6
    assert page.count("#differences tbody tr") >= 1
    page.screenshot("comparison")
    assert page.complaints == []


def test_a_narrow_window_needs_no_scrolling_to_the_side(browser, tmp_path):
    path = tmp_path / "run.html"
    path.write_text(page_of("eight devices"), encoding="utf-8")
    page = Page(browser, path, width=600)
    assert page.ask("document.documentElement.scrollWidth") <= 600
    page.screenshot("narrow", "#load")


def colors_in(path):
    """The colours of a picture."""
    from PIL import Image

    with Image.open(path) as picture:
        return {color for _, color in picture.convert("RGB").getcolors(picture.width * picture.height)}
