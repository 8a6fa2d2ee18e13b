# SPDX-License-Identifier: Apache-2.0
"""Charts of the documentation: bars in rows, and who receives from whom, as small SVG files.

A row of bars can be read on a phone, where columns side by side cannot.  Colours differ in lightness, too, and follow
the reader's system, light or dark; nothing is fetched from elsewhere and no script runs.
"""

from __future__ import annotations

import itertools
import math
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

#: In a phone's column of 360 points text of 12.5 is 9.4 points high; wider pictures would make it smaller.
WIDTH = 480
_LABELS, _VALUES, _EDGE = 130, 62, 8  # widths: of labels on the left, of values on the right, of the margin
_BAR, _GAP, _BETWEEN, _LINE = 13, 3, 12, 19  # heights
_STYLE = """
text { font: 12.5px system-ui, sans-serif; fill: #26323a }
.title { font-weight: 600; font-size: 13.5px }
.value, .legend { font-size: 11.5px; fill: #4c5a63 }
.axis { stroke: #b8c2c8; stroke-width: 1 }
.s0 { fill: #00796b; stroke: #00796b } .s1 { fill: #f08c3a; stroke: #f08c3a } .s2 { fill: #a9b4bb; stroke: #a9b4bb }
.bar { stroke: none } .way { fill: none; stroke-width: 1.6 } .dot { stroke: none }
@media (prefers-color-scheme: dark) {
text { fill: #e3e8eb } .value, .legend { fill: #b3bec5 } .axis { stroke: #59656d }
.s0 { fill: #35b5a4; stroke: #35b5a4 } .s1 { fill: #f5a45f; stroke: #f5a45f } .s2 { fill: #75828b; stroke: #75828b }
}
"""


@dataclass(frozen=True)
class Bar:
    """Pieces one behind the other, each the number of a series and a value, and what stands behind them."""

    pieces: tuple[tuple[int, float], ...]
    text: str

    @property
    def length(self) -> float:
        """The sum of the pieces."""
        return sum(value for _, value in self.pieces)


@dataclass(frozen=True)
class Row:
    """A label and its bars, one below the other."""

    label: str
    bars: tuple[Bar, ...]


def bar_chart(title: str, series: Mapping[int, str], rows: Sequence[Row], is_log: bool = False) -> str:
    """Return rows of bars as the text of an SVG file; with ``is_log`` each tenfold is as long as the one before.

    Parameters
    ----------
    series : number of each colour with its name, as the legend shows them
    """
    heights = [len(row.bars) * (_BAR + _GAP) - _GAP for row in rows]
    top = 3 * _LINE + _EDGE
    svg = _begin(title, top + sum(heights) + _BETWEEN * len(rows))
    for place, (number, name) in zip(_spread(series.values()), series.items(), strict=True):
        _add(svg, "rect", x=place, y=_LINE + 13, width=10, height=10, rx=2, **{"class": f"bar s{number}"})
        _add(svg, "text", name, x=place + 15, y=_LINE + 22, **{"class": "legend"})
    longest = max(bar.length for row in rows for bar in row.bars)
    for row, height in zip(rows, heights, strict=True):
        _add(svg, "text", row.label, x=_EDGE, y=top + height / 2 + 4.5)
        _add(svg, "line", x1=_LABELS, x2=_LABELS, y1=top - 2, y2=top + height + 2, **{"class": "axis"})
        for number, bar in enumerate(row.bars):
            _add_bar(svg, bar, top + number * (_BAR + _GAP), _scale(bar.length, longest, is_log))
        top += height + _BETWEEN
    return _end(svg)


def ways(title: str, rounds: Sequence[Sequence[Sequence[int]]], names: Sequence[str]) -> str:
    """Return who receives from whom: ``rounds[t][i]`` are those that device i receives from in round t."""
    size, top = len(rounds[0]), 3 * _LINE
    svg = _begin(title, top + size * 2 * _LINE)
    step = (WIDTH - _LABELS - 2 * _EDGE) / len(rounds)
    for number, name in enumerate(names):
        _add(svg, "text", name, x=_LABELS + (number + 0.5) * step, y=2 * _LINE, **{"text-anchor": "middle"})
    places = [top + (device + 0.5) * 2 * _LINE for device in range(size)]
    for device, y in enumerate(places):
        _add(svg, "text", f"device {device}", x=_EDGE, y=y + 4.5)
    for number, peers in enumerate(rounds):
        left, right = _LABELS + number * step, _LABELS + (number + 1) * step
        for device, senders in enumerate(peers):
            _add_way(svg, left, places[device], right, places[device], "axis")
            for sender in senders:
                _add_way(svg, left, places[sender], right, places[device], f"way s{number % 2}")
    for x in (_LABELS + number * step for number in range(len(rounds) + 1)):
        for y in places:
            _add(svg, "circle", cx=x, cy=y, r=4, **{"class": "dot s2"})
    return _end(svg)


def steps(title: str, curves: Mapping[str, Sequence[tuple[int, int]]], most: int) -> str:
    """Return curves that go in steps, one below the other: each place from which on a value holds, and at last the end.

    Parameters
    ----------
    most : the highest value, at the top of every curve
    """
    height, top, right = 4 * _LINE, 2 * _LINE + _EDGE, WIDTH - _VALUES
    svg = _begin(title, top + len(curves) * (height + 2 * _LINE))
    for name, points in curves.items():
        places = [(_LABELS + (right - _LABELS) * x / max(points[-1][0], 1), top + height * (1 - y / most))
                  for x, y in points]  # fmt: skip
        _add(svg, "text", name, x=_EDGE, y=top + height / 2)
        for value in (0, most):
            y = top + height * (1 - value / most)
            _add_way(svg, _LABELS, y, right, y, "axis")
            _add(svg, "text", str(value), x=_LABELS - 14, y=y + 4.5, **{"class": "legend"})
        for (x1, y1), (x2, y2) in itertools.pairwise(places):
            _add_way(svg, x1, y1, x2, y1, "way s0")
            _add_way(svg, x2, y1, x2, y2, "way s0")
        _add(svg, "text", f"{points[-1][0]:,}", x=right + 5, y=top + height + 4.5, **{"class": "value"})
        top += height + 2 * _LINE
    return _end(svg)


def _begin(title: str, height: float) -> ET.Element:
    svg = ET.Element("svg", xmlns="http://www.w3.org/2000/svg", viewBox=f"0 0 {WIDTH} {height:g}", role="img")
    _add(svg, "title", title)
    _add(svg, "style", _STYLE)
    _add(svg, "text", title, x=_EDGE, y=_LINE - 3, **{"class": "title"})
    return svg


def _end(svg: ET.Element) -> str:
    ET.indent(svg, " ")
    return ET.tostring(svg, encoding="unicode") + "\n"


def _add(parent: ET.Element, tag: str, text: str | None = None, **attributes: object) -> None:
    shown = {name: f"{value:.5g}" if isinstance(value, float) else str(value) for name, value in attributes.items()}
    ET.SubElement(parent, tag, shown).text = text


def _add_bar(svg: ET.Element, bar: Bar, y: float, width: float) -> None:
    x = float(_LABELS)
    for number, value in bar.pieces:
        piece = width * value / bar.length if bar.length else 0.0
        _add(svg, "rect", x=x, y=y, width=piece, height=_BAR, **{"class": f"bar s{number}"})
        x += piece
    _add(svg, "text", bar.text, x=x + 5, y=y + 10.5, **{"class": "value"})


def _add_way(svg: ET.Element, x1: float, y1: float, x2: float, y2: float, kind: str) -> None:
    _add(svg, "line", x1=x1, y1=y1, x2=x2, y2=y2, **{"class": kind})


def _scale(value: float, longest: float, is_log: bool) -> float:
    """Return a bar's length; on a logarithmic scale that of 1 is a tenth of a tenfold."""
    if value <= 0:
        return 0.0
    part = (math.log10(value) + 0.1) / (math.log10(longest) + 0.1) if is_log else value / longest
    return (WIDTH - _LABELS - _VALUES - _EDGE) * part


def _spread(names: Iterable[str]) -> Iterator[float]:
    """Yield where the names of a legend begin; a letter is about 6.2 wide."""
    place = float(_EDGE)
    for name in names:
        yield place
        place += 6.2 * len(name) + 32
