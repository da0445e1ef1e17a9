"""The documents: every command and every block of Python in them runs, and every link leads somewhere."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import gerd
from gerd.pictures.colours import BACKDROP

ROOT = Path(__file__).parents[2]
PACKAGES = sorted(path.parent.name for path in (ROOT / "gerd").glob("*/__init__.py"))
DOCUMENTS = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md"))]
NOT_RUN = re.compile(r"^\s*(make|pip|git clone)\b")  # they build the very environment that the tests run in
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(document: Path) -> list[tuple[str, str]]:
    return FENCE.findall(document.read_text("utf-8"))


@pytest.fixture
def reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a reader of the documents sits: an empty folder with the example configs."""
    (tmp_path / "configs").symlink_to(ROOT / "configs")
    (tmp_path / "docs").mkdir()
    (tmp_path / "bin").mkdir()
    for name, start in (("gerd", "from gerd.cli.app import main; main()"), ("python", "")):
        program = f"exec '{sys.executable}' " + (f'-c "{start}" "$@"\n' if start else '"$@"\n')
        (tmp_path / "bin" / name).write_text(f"#!/bin/sh\n{program}")
        (tmp_path / "bin" / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_there_are_documents_with_something_to_run() -> None:
    languages = [language for document in DOCUMENTS for language, _ in blocks(document)]
    assert {"python", "sh", "yaml"} <= set(languages) <= {"python", "sh", "bash", "yaml", "text"}
    for document in DOCUMENTS:
        assert document.read_text("utf-8").count("\n```") == 2 * len(blocks(document)), document


@pytest.mark.parametrize("document", [d for d in DOCUMENTS if blocks(d)], ids=lambda d: d.name)
def test_what_a_document_shows_works(document: Path, reader: Path) -> None:
    """In the order of the page: configs are written, shell lines and Python are run. Python shares one namespace."""
    namespace: dict[str, object] = {"__name__": "document"}
    for language, text in blocks(document):
        if language == "yaml":
            config = gerd.parse(text)
            assert config.actors
            name = re.match(r"# (\S+\.yaml)\n", text)
            if name:
                (reader / name[1]).write_text(text)
        elif language in ("sh", "bash"):
            lines = [line for line in text.splitlines() if not NOT_RUN.match(line)]
            result = subprocess.run(["sh", "-euc", "\n".join(lines)], capture_output=True, text=True, timeout=600)
            assert result.returncode == 0, f"{text}\n{result.stderr}"
        elif language == "python":
            exec(compile(text, f"{document.name}:python", "exec"), namespace)


def anchors(document: Path) -> set[str]:
    """The names by which a page's headings are linked to, as GitHub makes them."""
    text = FENCE.sub("", document.read_text("utf-8"))
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda d: d.name)
def test_links_lead_somewhere(document: Path) -> None:
    text = FENCE.sub("", document.read_text("utf-8"))
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if target.startswith("https://"):
            continue
        path, _, anchor = target.partition("#")
        linked = document.parent / path if path else document
        assert linked.exists(), target
        assert not anchor or anchor in anchors(linked), target


def test_files_that_the_documents_name_exist() -> None:
    """Paths begin at the repository's root or in gerd/, at one of its packages."""
    first = "|".join(["gerd", "configs", "docs", "tests", "examples", "benchmarks", *PACKAGES])
    makefile = (ROOT / "Makefile").read_text("utf-8")
    for document in DOCUMENTS:
        text = FENCE.sub("", document.read_text("utf-8"))
        for name in re.findall(rf"`((?:{first})/[\w./-]*)`", text):
            assert (ROOT / name).exists() or (ROOT / "gerd" / name).exists(), f"{document.name}: {name}"
        for target in re.findall(r"`make ([a-z-]+)`", text):
            assert re.search(rf"^{target}:", makefile, re.MULTILINE), f"{document.name}: make {target}"


def test_the_table_of_packages_has_them_all() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    assert sorted(re.findall(r"^\| `(\w+)` \| ", text, re.MULTILINE)) == PACKAGES


def test_the_picture_shows_the_example() -> None:
    file = ROOT / "docs" / "bouncing.gif"
    assert file.stat().st_size < 400_000
    recording = gerd.simulate(gerd.load(ROOT / "configs" / "bouncing.yaml"))
    with Image.open(file) as pages:
        assert pages.n_frames == recording.steps
        zoom = pages.width // recording.width
        for step in (0, 30, 59):
            pages.seek(step)
            colours = np.asarray(pages.convert("RGB"))[: recording.height * zoom : zoom, ::zoom]
            events = recording.frames(step, step + 1)[0].any(0).numpy()
            assert np.array_equal((colours != BACKDROP).any(-1), events), "make the picture again, as the README says"


def test_the_config_reference_is_up_to_date(tmp_path: Path) -> None:
    check = [sys.executable, str(ROOT / "docs" / "make_reference.py"), "--check"]
    result = subprocess.run(check, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    shutil.copy(ROOT / "docs" / "make_reference.py", tmp_path)
    copy = [sys.executable, str(tmp_path / "make_reference.py")]
    assert subprocess.run([*copy, "--check"], capture_output=True).returncode == 1
    assert subprocess.run(copy).returncode == 0
    assert (tmp_path / "config.md").read_text() == (ROOT / "docs" / "config.md").read_text()
    (tmp_path / "config.md").write_text("old")
    assert subprocess.run([*copy, "--check"], capture_output=True).returncode == 1


def test_the_config_reference_has_every_field() -> None:
    page = (ROOT / "docs" / "config.md").read_text("utf-8")
    resolved = gerd.parse("actors: [{shape: square}]").resolved()

    def paths(node: dict[str, object], path: str) -> list[str]:
        below = [paths(value, f"{path}{key}.") for key, value in node.items() if isinstance(value, dict) and value]
        return [f"{path}{key}" for key in node] + [name for names in below for name in names]

    listed = paths({**resolved, "actors": {}}, "") + paths(resolved["actors"][0], "actors.0.")
    assert len(listed) > 40
    for path in listed:
        assert f"| `{path}` |" in page, path
