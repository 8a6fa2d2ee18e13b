# SPDX-License-Identifier: Apache-2.0
"""The pages that are opened in a browser, and the charts that each must have."""

from shoal.report.comparison import compare_traces
from shoal.report.page import make_page
from traces import made_up_trace, real_trace

_MANY = ("load", "bytes", "memory")
CHARTS_OF = {
    "one device": ("timeline", "frontier", "times", "memory"),
    "eight devices": ("timeline", "frontier", "times", *_MANY),
    "asynchronous": ("timeline", "visits", *_MANY),
    "two phases": ("timeline", "frontier", "times", *_MANY),
    "eight that steal": ("timeline", "frontier", "times", "load", "bytes", "stealing", "memory"),
}


def page_of(name):
    """The page of a run, real or made up."""
    return make_page(made_up_trace(64, 10_000) if name == "large" else real_trace(name))


def comparison_page():
    """The page of two runs."""
    return compare_traces(real_trace("one device"), real_trace("eight devices"), ("one.json", "eight.json")).make_page()
