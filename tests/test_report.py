# SPDX-License-Identifier: Apache-2.0
"""A run one can look at: report= of every call, traces and their files, what charts are made of, pages, Perfetto."""

import base64
import importlib
import inspect
import itertools
import json
import re
import time

import numpy as np
import pytest

import shoal
import shoal.algorithms
import traces
from checks import assert_refused
from command_line import assert_refused as assert_command_refused
from command_line import run
from samples import SIX, Hops
from shoal.errors import ArgumentError, FileFormatError
from shoal.report import aggregation
from shoal.report.aggregation import group_supersteps, shares_over_time
from shoal.report.charts import CHARTS, draw_charts
from shoal.report.comparison import compare_traces
from shoal.report.figures import format_seconds
from shoal.report.kinds import KINDS, WORK, seconds_of
from shoal.report.page import make_page
from shoal.report.tables import MAX_PHASES, phases_of, strategies_of, totals_of
from shoal.report.trace import VERSION, read_trace, trace_from
from traces import GRAPH, RUNS, made_up_trace, real_trace, with_stealing

pytestmark = pytest.mark.host_only("about files and pages; runs on a GPU have statistics of the same shape")

BFS_MODULE = importlib.import_module("shoal.algorithms.bfs")
MAX_PAGE_BYTES = 10_000_000


def numbers_of(packed):
    """The numbers in a figure that were packed for Plotly."""
    return np.frombuffer(base64.b64decode(packed["bdata"]), packed["dtype"])


def check_figure(figure):
    """Refuse a figure with a name or a value that Plotly does not know."""
    import plotly.graph_objects as go

    go.Figure(figure)


def charts_of(trace):
    return {chart.name: chart for chart in draw_charts(trace)}


# The option


def test_every_algorithm_and_run_take_a_report():
    calls = [getattr(shoal.algorithms, name) for name in shoal.algorithms.__all__]
    assert len(calls) >= 5
    assert [call.__name__ for call in (*calls, shoal.run) if not hasattr(call, "is_public_call")] == []
    assert "report=" in shoal.bfs.__doc__
    assert list(inspect.signature(shoal.bfs).parameters)[:2] == ["graph", "source"]


def test_the_result_is_the_same_and_the_file_is_there(tmp_path):
    path = tmp_path / "run.json"
    found = shoal.bfs(GRAPH, 0, report=path)
    np.testing.assert_array_equal(found.distance, shoal.bfs(GRAPH, 0).distance)
    trace = read_trace(str(path))
    assert trace.stats == json.loads(json.dumps(found.stats.to_dict()))
    assert (trace.call, trace.graph["num_edges"], trace.num_devices) == ("bfs", GRAPH.num_edges, 1)
    assert trace.environment["versions"]["numpy"] == np.__version__
    assert [file.name for file in tmp_path.iterdir()] == ["run.json"]


def test_a_program_s_report_has_its_name(tmp_path):
    shoal.run(Hops(), SIX, source=0, report=str(tmp_path / "run.json"))
    assert read_trace(str(tmp_path / "run.json")).call == "Hops"


def test_a_placed_graph_says_where_it_was(tmp_path):
    placed = shoal.place(GRAPH, "cpu:8x1")
    shoal.bfs(placed, 0, report=str(tmp_path / "run.json"))
    assert read_trace(str(tmp_path / "run.json")).title == "bfs on cpu:8x1"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"report": "run.txt"}, ("report='run.txt'", ".html", ".perfetto.json", ".json")),
        ({"report": 7}, ("report=7", "path")),
        ({"report": "no/such/folder/run.html"}, ("folder that does not exist",)),
        ({"report": ".html", "stats": "totals"}, ("report='.html'", "stats='totals'", "allowed: full")),
    ],
)
def test_what_cannot_be_written_is_refused_before_the_run(options, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(BFS_MODULE, "run_configured", None)  # to run would be an error of another kind
    assert_refused(lambda: shoal.bfs(GRAPH, 0, **options), *words, error=ArgumentError)
    assert list(tmp_path.iterdir()) == []


def test_without_plotly_a_page_is_refused_before_the_run(tmp_path, monkeypatch):
    monkeypatch.setattr("shoal.report.page.importlib.util.find_spec", lambda name: None if name == "plotly" else name)
    monkeypatch.setattr(BFS_MODULE, "run_configured", None)
    path = str(tmp_path / "run.html")
    assert_refused(lambda: shoal.bfs(GRAPH, 0, report=path), "plotly", "pip install 'shoal[report]'", path)
    monkeypatch.undo()
    monkeypatch.setattr("shoal.report.page.importlib.util.find_spec", lambda name: None if name == "plotly" else name)
    shoal.bfs(GRAPH, 0, report=str(tmp_path / "run.json"))  # a trace needs none
    assert [file.name for file in tmp_path.iterdir()] == ["run.json"]


def test_a_run_that_fails_leaves_no_file(tmp_path):
    with pytest.raises(ArgumentError):
        shoal.bfs(GRAPH, GRAPH.num_vertices, report=str(tmp_path / "run.json"))
    assert list(tmp_path.iterdir()) == []


def test_a_page_that_fails_leaves_what_was_there(tmp_path, monkeypatch):
    path = tmp_path / "run.perfetto.json"
    path.write_text("before")
    monkeypatch.setattr("shoal.report.perfetto.seconds_of", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        shoal.bfs(GRAPH, 0, report=str(path))
    assert path.read_text() == "before"
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


# Statistics


def test_phases_say_whose_supersteps_are_whose():
    stats = real_trace("two phases").stats
    assert [(phase["program"], phase["step"]) for phase in stats["phases"]] == [
        ("Betweenness", "forward"), ("Betweenness", "backward")
    ]  # fmt: skip
    for name in RUNS:
        stats = real_trace(name).stats
        assert sum(phase["num_supersteps"] for phase in stats["phases"]) == stats["num_supersteps"], name


@pytest.mark.parametrize("name", RUNS)
def test_supersteps_follow_one_another(name):
    trace = real_trace(name)
    begin, seconds = trace.begin, trace.column("seconds")
    assert begin.min() == 0
    assert (begin[1:] >= (begin + seconds)[:-1] - 1e-9).all()
    assert (begin + seconds).max() <= trace.stats["seconds"] + 1e-3
    assert (trace.column("idle_seconds") <= seconds + 1e-9).all()


def test_auto_has_reasons_and_what_was_asked_for_has_none():
    reasons = real_trace("eight devices").stats["reasons"]
    assert "pull" in reasons["communication"]
    assert "segments" in reasons["partition"]
    assert "devices" not in reasons
    asked = shoal.bfs(GRAPH, 0, devices="cpu:2x1", communication="selective", partition="segment", memory="maximum")
    assert {"communication", "partition", "memory"} & set(asked.stats.to_dict()["reasons"]) == set()
    assert "SHOAL_DEVICES" in shoal.bfs(GRAPH, 0).stats.to_dict()["reasons"]["devices"]
    assert "own ids" in real_trace("asynchronous").stats["reasons"]["duplication"]
    rows = {axis: (taken, why) for axis, taken, why in strategies_of(real_trace("eight devices"))}
    assert rows["devices"] == ("cpu:8x1", "as asked")
    assert rows["communication"][0] == "broadcast"


def test_components_without_supersteps_have_a_trace(tmp_path):
    path = str(tmp_path / "run.json")
    shoal.connected_components(GRAPH, devices="cpu:2x1", execution="async", report=path)
    assert {"timeline", "visits", "load", "bytes", "memory"} == set(charts_of(read_trace(path)))


# Files


@pytest.mark.parametrize("name", RUNS)
def test_a_trace_comes_back_from_its_file(name, tmp_path):
    trace = real_trace(name)
    trace.write(str(tmp_path / "run.json"))
    again = read_trace(str(tmp_path / "run.json"))
    assert again.to_dict() == json.loads(json.dumps(trace.to_dict()))
    assert make_page(again) == make_page(trace)


def test_keys_of_later_writers_are_kept():
    value = real_trace("one device").to_dict() | {"more": [1]}
    assert trace_from(value, "here").to_dict()["more"] == [1]


def broken(**changes):
    value = json.loads(json.dumps(real_trace("eight devices").to_dict()))
    value["stats"]["supersteps"][0] |= changes.pop("row", {})
    value["stats"] |= changes.pop("stats", {})
    return json.dumps(value | changes)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: "", "empty"),
        (lambda: "{", "is not JSON"),
        (lambda: "[]", "is no trace of shoal"),
        (lambda: "{}", "is no trace of shoal"),
        (lambda: broken(version=VERSION + 1), f"version {VERSION + 1}"),
        (lambda: broken(stats={"num_devices": 2}), "supersteps[0].begin_seconds"),
        (lambda: broken(stats={"supersteps": 3}), "no whole trace"),
        (lambda: broken(row={"seconds": [1.0] * 7}), "supersteps[0].seconds"),
        (lambda: broken(row={"seconds": [float("nan")] * 8}), "seconds"),
        (lambda: broken(row={"frontier_size": ["x"] * 8}), "no whole trace"),
        (lambda: json.dumps({"format": "shoal trace", "version": VERSION}), "no whole trace"),
    ],
)
def test_what_is_no_trace_is_refused(make, words, tmp_path):
    path = tmp_path / "run.json"
    path.write_text(make())
    assert_refused(lambda: read_trace(str(path)), "run.json", words, error=FileFormatError)


# What charts are made of


def test_work_is_what_nothing_else_accounts_for():
    trace = made_up_trace(3, 50)
    total = sum(seconds_of(trace, kind) for kind in KINDS)
    np.testing.assert_allclose(total, trace.column("seconds"), atol=1e-12)
    assert (seconds_of(trace, WORK) > 0).all()


@pytest.mark.parametrize("num_supersteps", [1, 399, 400, 401, 1234])
def test_groups_have_all_supersteps_once(num_supersteps):
    trace = made_up_trace(2, num_supersteps)
    groups, sizes = group_supersteps(trace), trace.column("frontier_size")
    assert groups.sizes.sum() == num_supersteps
    assert len(groups.first) <= aggregation.MAX_GROUPS
    assert groups.sum(sizes).sum() == sizes.sum()
    for first, last, total, most in zip(
        groups.first, groups.last, groups.sum(sizes), groups.maximum(sizes), strict=True
    ):
        assert total.tolist() == sizes[first : last + 1].sum(axis=0).tolist()
        assert most.tolist() == sizes[first : last + 1].max(axis=0).tolist()


def test_shares_over_time_are_those_of_small_steps(monkeypatch):
    """The oracle walks through each superstep in small steps of time."""
    monkeypatch.setattr(aggregation, "MAX_SLICES", 7)
    trace = made_up_trace(3, 11)
    edges, shares = shares_over_time(trace, seconds_of(trace, WORK))
    begin, seconds, work = trace.begin, trace.column("seconds"), seconds_of(trace, WORK)
    for device in range(3):
        spent, covered = np.zeros(7), np.zeros(7)
        for number in range(11):
            steps = begin[number, device] + seconds[number, device] * (np.arange(20_000) + 0.5) / 20_000
            cells = np.clip(np.searchsorted(edges, steps, side="right") - 1, 0, 6)
            count = np.bincount(cells, minlength=7) / 20_000
            spent += count * work[number, device]
            covered += count * seconds[number, device]
        np.testing.assert_allclose(shares[device], spent / covered, atol=1e-3)


def test_time_between_phases_is_no_share():
    trace = made_up_trace(1, 2)
    value = json.loads(json.dumps(trace.to_dict()))
    value["stats"]["supersteps"][1]["begin_seconds"] = [10.0]
    _, shares = shares_over_time(trace_from(value, "here"), seconds_of(trace, WORK))
    assert np.isnan(shares).mean() > 0.9
    assert not np.isnan(shares[0, [0, -1]]).any()


def test_bars_of_the_timeline_are_the_seconds_of_the_trace():
    trace = made_up_trace(3, 50)
    lines = charts_of(trace)["timeline"].figure["data"]
    for kind in KINDS:
        for device in range(3):
            own = [line for line in lines if line["name"] == kind.name and line["meta"] == {"device": device}]
            places = np.concatenate([numbers_of(line["x"]).reshape(-1, 3) for line in own])
            assert np.isnan(places[:, 2]).all()
            lengths = np.sort((places[:, 1] - places[:, 0]) / 1e3)  # milliseconds
            seconds = np.sort(seconds_of(trace, kind)[:, device])
            np.testing.assert_allclose(lengths, seconds[seconds > 0], atol=1e-9)
    assert sum(line["showlegend"] for line in lines) == len(KINDS)


def test_a_kind_that_only_some_devices_have_is_in_the_legend():
    lines = charts_of(real_trace("eight that steal"))["timeline"].figure["data"]
    stealing = [line for line in lines if line["name"] == "steal"]
    thieves = np.flatnonzero(real_trace("eight that steal").column("steal_seconds").sum(axis=0)).tolist()
    assert [line["meta"]["device"] for line in stealing] == thieves
    assert [line["showlegend"] for line in stealing] == [True] + [False] * (len(thieves) - 1)


def test_frontier_bars_are_the_sums_over_devices():
    trace = made_up_trace(3, 50)
    bars = charts_of(trace)["frontier"].figure["data"]
    assert {bar["name"] for bar in bars} == {"push", "pull"}
    found = {}
    for bar in bars:
        found |= dict(zip(numbers_of(bar["x"]).tolist(), numbers_of(bar["y"]).tolist(), strict=True))
    assert [found[number] for number in range(50)] == trace.column("frontier_size").sum(axis=1).tolist()


def test_groups_of_both_directions_say_so():
    bars = charts_of(made_up_trace(1, 5_000))["frontier"]
    assert "push and pull" in {bar["name"] for bar in bars.figure["data"]}
    assert "up to 13 supersteps" in bars.note


def test_bytes_and_load_are_sums_over_supersteps():
    trace = made_up_trace(5, 20)
    charts = charts_of(trace)
    assert charts["bytes"].figure["data"][0]["y"] == trace.column("bytes_sent").sum(axis=0).tolist()
    edges, seconds = charts["load"].figure["data"]
    assert edges["y"] == trace.column("edges_visited").sum(axis=0).tolist()
    others = sum(trace.column(f"{kind}_seconds") for kind in ("idle", "pack", "combine"))
    np.testing.assert_allclose(seconds["y"], (trace.column("seconds") - others).sum(axis=0) * 1e6)


def test_what_a_run_does_not_have_is_not_drawn():
    assert set(charts_of(real_trace("one device"))) == {"timeline", "frontier", "times", "memory"}
    assert set(charts_of(real_trace("asynchronous"))) == {"timeline", "visits", "load", "bytes", "memory"}
    assert "stealing" not in charts_of(real_trace("eight devices"))
    assert sum(charts_of(real_trace("eight that steal"))["stealing"].figure["data"][0]["y"]) > 0
    stolen = charts_of(with_stealing(real_trace("eight devices")))["stealing"].figure["data"][0]["y"]
    count = len(real_trace("eight devices").supersteps)
    assert stolen == [100.0 * device * count for device in range(8)]


def test_a_run_of_nothing_has_a_page():
    trace = traces.record_run("bfs", GRAPH, shoal.connected_components(shoal.Graph.from_edges([], [])).stats)
    assert make_page(trace).startswith("<!DOCTYPE html>")


@pytest.mark.parametrize("name", RUNS)
def test_figures_are_what_plotly_knows_and_captions_one_sentence(name):
    for chart in draw_charts(with_stealing(real_trace(name))):
        figure = json.loads(json.dumps(chart.figure))
        check_figure(figure)
        assert re.fullmatch(r"[A-Z][^.]*good is [^.]*\.", chart.caption), chart.caption
        titles = [axis["title"]["text"] for key, axis in figure["layout"].items() if key == "yaxis" and "title" in axis]
        assert chart.name == "timeline" or titles, chart.name
    assert len(CHARTS) == 9


def test_totals_are_those_of_the_statistics():
    trace = made_up_trace(4, 30)
    totals = totals_of(trace)
    assert totals["supersteps"] == "30"
    share = trace.column("idle_seconds").sum() / trace.column("seconds").sum()
    assert totals["idle in supersteps"] == f"{share:.1%}"
    assert totals["edges visited"] == f"{int(trace.column('edges_visited').sum()):,}"


@pytest.mark.parametrize(
    ("seconds", "words"), [(2.5, "2.5 s"), (0.0123, "12.3 ms"), (4e-5, "40 µs"), (1234.0, "1,234 s")]
)
def test_times_are_in_the_unit_that_suits_them(seconds, words):
    assert format_seconds(seconds) == words


def test_phases_that_are_not_listed_are_counted():
    value = real_trace("one device").to_dict()
    phase = value["stats"]["phases"][0]
    trace = trace_from(value | {"stats": value["stats"] | {"phases": [phase] * 100}}, "here")
    rows, num_more = phases_of(trace)
    assert (len(rows), num_more) == (MAX_PHASES, 100 - MAX_PHASES)
    assert f"And {100 - MAX_PHASES} more phases." in make_page(trace)


# Pages


def test_a_page_stands_alone():
    page = make_page(real_trace("eight devices"))
    outside = re.sub(r"<script>.*?</script>", "", page, flags=re.DOTALL)  # what the library itself is made of
    assert not re.search(r"(src|href)\s*=|https?://|@import|url\(", outside)
    assert page.count("plotly.js v") == 1
    assert len(page) < MAX_PAGE_BYTES


def test_names_cannot_leave_their_place():
    value = json.loads(json.dumps(real_trace("one device").to_dict()))
    value["call"] = value["environment"]["cpu"] = "</script><script>alert(1)</script>"
    page = make_page(trace_from(value, "here"))
    assert "<script>alert" not in page
    other = compare_traces(real_trace("one device"), real_trace("two phases"), ("</script><script>alert(1)", "b"))
    assert "<script>alert" not in other.make_page()


def test_64_devices_and_10_000_supersteps_are_a_small_page():
    trace = made_up_trace(64, 10_000)
    began = time.process_time()
    page = make_page(trace)
    assert time.process_time() - began < 20  # a few seconds, and some of them for the columns
    assert len(page) < MAX_PAGE_BYTES
    assert "10,000 supersteps" in page


# Perfetto


@pytest.mark.parametrize("name", RUNS)
def test_perfetto_has_every_superstep_of_every_device(name, tmp_path):
    trace, path = real_trace(name), tmp_path / "run.perfetto.json"
    RUNS[name](report=str(path))
    events = json.loads(path.read_text())["traceEvents"]
    slices = [event for event in events if event["ph"] == "X"]
    assert {event["tid"] for event in slices} == set(range(trace.num_devices))
    number = {(event["args"]["superstep"], event["tid"]) for event in slices}
    assert len(number) == trace.num_devices * len({superstep for superstep, _ in number})
    assert all(event["dur"] >= 0 and event["ts"] >= 0 for event in slices)
    assert {event["name"] for event in slices} <= {kind.name for kind in KINDS}
    assert sum(event["name"] == "thread_name" for event in events) == trace.num_devices
    for device in range(trace.num_devices):  # slices of one thread do not overlap
        own = sorted((e["ts"], e["ts"] + e["dur"]) for e in slices if e["tid"] == device)
        assert all(before[1] <= after[0] + 0.01 for before, after in itertools.pairwise(own))


def test_perfetto_s_times_are_the_trace_s(tmp_path):
    from shoal.report.perfetto import write_perfetto

    trace = made_up_trace(3, 20)
    write_perfetto(trace, str(tmp_path / "run.perfetto.json"))
    events = json.loads((tmp_path / "run.perfetto.json").read_text())["traceEvents"]
    idle = sum(event["dur"] for event in events if event["name"] == "idle")
    assert idle / 1e6 == pytest.approx(trace.column("idle_seconds").sum())
    counted = [event["args"]["frontier"] for event in events if event["name"] == "frontier"]
    assert counted == trace.column("frontier_size").sum(axis=1).tolist()


# Two runs


def test_a_comparison_has_the_numbers_of_both():
    first, second = made_up_trace(2, 30, seed=1), made_up_trace(3, 60, seed=2)
    found = compare_traces(first, second, ("a", "b")).to_dict()
    assert found["numbers"]["num_supersteps"] == {"first": 30, "second": 60, "ratio": 2.0}
    idle = found["numbers"]["idle_seconds"]
    assert idle["first"] == pytest.approx(first.column("idle_seconds").sum())
    assert idle["ratio"] == pytest.approx(idle["second"] / idle["first"])
    assert found["differences"]["devices"] == {"first": "cpu:2", "second": "cpu:3"}
    assert "graph" not in found["differences"]
    assert "stolen_edges" not in found["numbers"]


def test_runs_of_one_name_are_told_apart():
    assert compare_traces(*[made_up_trace(2, 30)] * 2, ("a", "a")).names == ("a (1)", "a (2)")


@pytest.mark.parametrize("second", RUNS)
def test_pages_of_two_runs_are_what_plotly_knows(second):
    page = compare_traces(real_trace("one device"), real_trace(second), ("a", "b")).make_page()
    figures = json.loads(re.search(r'id="figures">(.*?)</script>', page, re.DOTALL)[1])
    assert set(figures) == (set() if second == "asynchronous" else {"times", "frontiers"})
    for figure in figures.values():
        check_figure(figure)


# The command line


@pytest.fixture
def graph_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shoal.write(GRAPH, "graph.shoal")
    return tmp_path


def test_commands_make_pages(graph_file, capsys):
    for name, devices in (("one", "cpu"), ("two", "cpu:8x1")):
        out = run(f"bfs graph.shoal --source 0 --devices {devices} --report {name}.json", capsys)
        assert f"{name}.json" in out
    run("bfs graph.shoal --source 0 --report run.html --quiet", capsys)
    assert "bfs on cpu:8x1" in run("report two.json", capsys)
    found = json.loads(run("report one.json --output one.perfetto.json --json", capsys))
    assert found["written"] == "one.perfetto.json"
    table = run("compare one.json two.json", capsys)
    assert "cpu:8x1" in table
    assert "edges visited" in table
    both = json.loads(run("compare one.json two.json --html both.html --json", capsys))
    assert both["numbers"]["num_supersteps"]["first"] > 0
    assert run("compare one.json two.json --quiet", capsys) == ""
    names = {"run.html", "one.json", "two.json", "two.html", "one.perfetto.json", "both.html", "graph.shoal"}
    assert {path.name for path in graph_file.iterdir()} == names


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("bfs graph.shoal --source 0 --report run.txt", "report='run.txt' .html"),
        ("bfs graph.shoal --source 0 --report run.html --stats totals", "stats='totals' full"),
        ("report missing.json", "missing.json"),
        ("report graph.shoal", "graph.shoal JSON"),
        ("report missing.json --output run.txt", "output='run.txt' .html"),
        ("compare missing.json other.json", "missing.json"),
        ("compare missing.json other.json --html both.json", "html='both.json' .html"),
    ],
)
def test_commands_refuse_in_one_line(command, words, graph_file, capsys):
    assert_command_refused(command, words, capsys)
    assert [path.name for path in graph_file.iterdir()] == ["graph.shoal"]
