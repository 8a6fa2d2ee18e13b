# SPDX-License-Identifier: Apache-2.0
"""Figures are made by scripts: the tables in the documentation are what the kept results give, and the scripts run."""

import gzip
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import comparison
import devices
import document
import shoal
from figures import Figure
from shoal.bench import run_benchmark

pytestmark = pytest.mark.host_only("about tables in pages, and scripts for the CPU")

ROOT = Path(__file__).resolve().parents[1]
BENCHMARKS = ROOT / "benchmarks"
RESULTS = document.load_results(document.RESULTS)
BLOCK = re.compile(r"<!-- table: begin \w+ -->.*?<!-- table: end -->", re.DOTALL)


@pytest.fixture(scope="module")
def report():
    return run_benchmark(["kron10", "grid50"], ["bfs", "cc"], ["shoal", "scipy", "igraph"], repetitions=2).to_dict()


@pytest.mark.parametrize("page", document.PAGES, ids=lambda page: page.name)
def test_tables_are_what_the_kept_results_give(page):
    text = page.read_text(encoding="utf-8")
    assert BLOCK.search(text)
    assert document.with_tables(text, RESULTS) == text, "run: python benchmarks/document.py"


def test_every_kept_result_is_shown():
    shown = set(re.findall(r"<!-- table: begin (\w+) -->", "".join(page.read_text() for page in document.PAGES)))
    assert shown == set(document.TABLES) >= set(RESULTS)


@pytest.mark.parametrize("page", document.PAGES, ids=lambda page: page.name)
def test_no_measured_number_stands_outside_the_tables(page):
    prose = BLOCK.sub("", page.read_text(encoding="utf-8"))
    assert re.findall(r"[\d.,]*\d ?(?:ns|us|ms|s|MB|GB|GTEPS|x|times|bytes)\b", prose) == []


def test_kept_results_are_small_and_say_where_they_come_from():
    for result in RESULTS.values():
        assert {"command", "date", "environment", "kind"} <= set(result)
        assert "/" not in result["command"].split()[0]
    assert sum(path.stat().st_size for path in document.RESULTS.glob("*.json")) < 200_000
    assert not any("seconds" in cell for cell in RESULTS["comparison"]["results"])


def test_comparison_is_kept_and_written(report, tmp_path):
    (tmp_path / "bench.json").write_text(json.dumps(report))
    page = tmp_path / "page.md"
    page.write_text(
        "# Title\n<!-- table: begin comparison -->\nold\n<!-- table: end -->\nbetween\n"
        "<!-- table: begin summary -->\n<!-- table: end -->\nend\n"
    )
    (tmp_path / "kept").mkdir()
    arguments = [str(tmp_path / "bench.json"), "--results", str(tmp_path / "kept"), "--pages", str(page)]
    assert document.main(arguments) == 0
    text = page.read_text()
    assert "old" not in text
    assert "between" in text
    for cell in report["results"]:
        assert comparison.format_ms(cell["median_ms"]) in text
    assert report["environment"]["cpu"] in text
    assert comparison.NOT_LARGE in text
    assert document.main(arguments) == 0
    assert page.read_text() == text


def test_samples_become_medians_minima_and_counts(report):
    kept = comparison.summarize(report)
    cell = next(c for c in kept["results"] if (c["kernel"], c["library"]) == ("bfs", "scipy"))
    assert cell["num_samples"] == 2
    assert 0 < cell["minimum_ms"] <= cell["median_ms"]
    assert all("sources" not in graph for graph in kept["graphs"])


def fake_summary(**cells):
    """A comparison of BFS on kron20 with the given (median in ms, number of samples) of each library."""
    results = [
        {"graph": "kron20", "kernel": "bfs", "library": name, "agrees": median is not None, "note": "",
         "failure": "" if median else "MemoryError", "median_ms": median, "minimum_ms": median, "num_samples": count}
        for name, (median, count) in cells.items()
    ]  # fmt: skip
    graph = {"name": "kron20", "num_vertices": 2**20, "num_edges": 10, "note": ""}
    environment = RESULTS["startup"]["environment"] | {"cores_of_others": 0.7}
    settings = {"repetitions": 16, "num_threads": 2}
    return {
        "libraries": list(cells),
        "settings": settings,
        "graphs": [graph],
        "results": results,
        "date": "2000-01-01",
    } | {"environment": environment}


def test_large_graphs_are_compared_with_gapbs():
    summary = fake_summary(shoal=(40.0, 16), scipy=(280.0, 16), igraph=(1084.0, 1), networkit=(None, 0))
    row = comparison.comparison_table(summary)[2]
    assert row == "| kron20 | BFS | 40 | 280 (7x) | 1,084 (27.1x)* | failed | 32 | 1.25 |"
    notes = comparison.comparison_table(summary)[-1]
    assert "0.7 cores busy" in notes
    assert comparison.NOT_LARGE not in notes
    assert comparison.summary_table(summary)[2] == "| kron20 | 40 (scipy 7x) |"


def test_wrong_answers_are_marked_and_not_compared_with():
    summary = fake_summary(shoal=(40.0, 16), scipy=(20.0, 16), igraph=(80.0, 16))
    summary["results"][1]["agrees"] = False
    assert "20 (0.5x) wrong" in comparison.comparison_table(summary)[2]
    assert comparison.summary_table(summary)[2] == "| kron20 | 40 (igraph 2x) |"


def test_unknown_tables_and_reports_without_shoal_are_refused(tmp_path, capsys, report):
    page = tmp_path / "page.md"
    page.write_text("<!-- table: begin speed -->\n<!-- table: end -->\n")
    assert document.main(["--pages", str(page)]) == 1
    assert "'speed' is not known; allowed: comparison" in capsys.readouterr().err
    (tmp_path / "bench.json").write_text(json.dumps(report | {"libraries": ["scipy"]}))
    assert document.main([str(tmp_path / "bench.json"), "--results", str(tmp_path), "--pages", str(page)]) == 1
    assert "shoal must be among them" in capsys.readouterr().err


def test_figures_keep_their_bounds():
    assert Figure("import", 0.5, "s", bound=0.7).cells() == ["import", "0.5 s", "0.7 s", "pass"]
    assert Figure("import", 0.71, "s", bound=0.7).verdict == "fail"
    assert Figure("import", 1234.5, "us").cells() == ["import", "1,234 us", "", ""]


@pytest.mark.parametrize(
    ("script", "options", "num_figures"),
    [
        ("startup", "--scale 8 --repetitions 1 --calls 5", 8),
        ("memory", "--scale 8 --repetitions 1", 8),
        ("partitioning", "--scale 8", 8),
        ("user_program", "--scale 8 --repetitions 1", 8),
        ("gpu_user_program", "--scale 8 --repetitions 2 --devices cpu", 15),
        ("stealing_decisions", "--devices 2 3 --repetitions 3 --solved 2", 11),
        ("cost_inference", "--scale 8 --repetitions 50", 4),
        ("ownership", "--scale 9 --repetitions 1 --data missing", 4),
        ("model_stealing", "--scale 9 --data missing", 14),
        ("model_validation", "--scale 8 --smaller 11 --data missing", 11),
        ("planning", "--scales 8 10", 4),
        ("devices", "--scale 8 --memory-scale 8 --repetitions 1 --path-length 50 --data missing", 10),
    ],
)
def test_script_runs(script, options, num_figures, tmp_path):
    path = tmp_path / f"{script}.json"
    command = [sys.executable, str(BENCHMARKS / f"{script}.py"), *options.split(), "--json", str(path)]
    printed = subprocess.run(command, capture_output=True, text=True, check=True, env=environment()).stdout
    result = json.loads(path.read_text())
    assert result["name"] == script
    assert len(result["figures"]) == num_figures
    for figure in result["figures"]:
        assert figure["what"] in printed
        assert figure["value"] >= 0
    assert len(document.figures_table(result)) == num_figures + 4


def test_what_was_not_measured_is_left_open():
    page = "# Title\n<!-- table: begin devices -->\nold\n<!-- table: end -->\n"
    text = document.with_tables(page, {})
    assert text == page.replace("old", "\n" + document.NOT_MEASURED[0] + "\n")
    assert document.with_tables(text, {}) == text


def test_partitions_are_a_table():
    row = {"graph": "road", "partition": "metis", "partition_ms": 0.25, "cut_percent": 1.5, "border": 1234,
           "bfs_median_ms": 7.0, "bfs_minimum_ms": 6.5,
           "pagerank_median_ms": 123.4, "pagerank_minimum_ms": 99}  # fmt: skip
    kept = {"rows": [row], "note": "A note."}
    result = RESULTS["startup"] | {"kind": "devices", "tables": {"partitions": kept}}
    table = document.make_tables({"devices": result})["devices"]
    assert table[3] == "| --- | --- | --: | --: | --: | --: | --: |"
    assert table[4] == "| road | metis | 0.25 | 1.5 | 1,234 | 7 (6.5) | 123 (99) |"
    assert table[5:8] == ["", "A note.", ""]
    assert table[8:] == document.figures_table(RESULTS["startup"])


def test_real_graphs_that_are_there_become_rows(tmp_path, capsys):
    with gzip.open(tmp_path / devices.GRAPHS["social (Epinions)"], "wt") as file:
        file.writelines(f"{v} {w}\n" for v in range(20) for w in (v + 1, v // 2))
    kept = devices.measure_tables(tmp_path, repetitions=2)["partitions"]
    assert [row["partition"] for row in kept["rows"]] == list(devices.PARTITIONERS)
    for row in kept["rows"]:
        assert row["graph"] == "social (Epinions)"
        assert 0 < row["bfs_minimum_ms"] <= row["bfs_median_ms"]
        assert devices.TABLES["partitions"].cells(row)[1] == row["partition"]
    assert "social (Epinions) 21 vertices" in kept["note"]
    assert capsys.readouterr().err.count("is left out") == len(devices.GRAPHS) - 1


def test_two_devices_are_held_to_what_is_asked():
    graph = shoal.generate.rmat(6, seed=1)
    asked = [figure.bound for figure in devices.figures_of_search(graph, 1, devices.ASKED_RATIO)]
    assert asked == [None] * 4 + [devices.ASKED_RATIO] * 2
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert f"DEVICES_SCALE ?= {devices.ASKED_SCALE}\n" in makefile


def environment():
    """The scripts run from a checkout without an installation too."""
    paths = [str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]
    return os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}
