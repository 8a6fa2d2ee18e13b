# SPDX-License-Identifier: Apache-2.0
"""The pages under docs/ are true: their code and commands run, their links lead somewhere."""

import re
import runpy
import shlex
from pathlib import Path

import pytest

from shoal.cli import app, main

ROOT = Path(__file__).resolve().parents[1]
PAGES = [*sorted((ROOT / "docs").rglob("*.md")), *ROOT.glob("*.md"), ROOT / "benchmarks" / "README.md"]
DOCS = [page for page in PAGES if ROOT / "docs" in page.parents]
#: Its blocks go on from one another: see test_site.py.
TUTORIAL = ROOT / "docs" / "tutorial.md"


def blocks(page, language):
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


CODE = [(page.stem, code) for page in DOCS if page != TUTORIAL for code in blocks(page, "python")]


@pytest.mark.parametrize(("page", "code"), CODE, ids=[f"{page}-{k}" for k, (page, _) in enumerate(CODE)])
def test_code_runs(page, code, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    script = tmp_path / "block.py"  # a file, since rules are compiled from their source
    script.write_text(code, encoding="utf-8")
    runpy.run_path(str(script), run_name="__main__")
    assert capsys.readouterr().out


@pytest.mark.parametrize("page", [page for page in DOCS if blocks(page, "console")], ids=lambda page: page.stem)
def test_commands_run(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for line in "".join(blocks(page, "console")).splitlines():
        assert main(shlex.split(line.removeprefix("$ shoal "))) == 0, line
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text(encoding="utf-8")):
        assert "://" in target or (page.parent / target).exists(), target


def test_every_command_is_listed():
    text = (ROOT / "docs" / "command-line.md").read_text(encoding="utf-8")
    names = [command.name for command in app.registered_commands] + [group.name for group in app.registered_groups]
    assert "bfs" in names
    assert [name for name in names if f"| `{name}" not in text] == []
