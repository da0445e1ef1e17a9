"""The documents: every command and every block of Python in them runs, and every link leads somewhere."""

from __future__ import annotations

import os
import re
import runpy
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml
from PIL import Image
from support.processes import COMMAND, DEADLINE, run_here
from typer.main import get_command

import gerd
from gerd.cli.app import app
from gerd.pictures.colours import BACKDROP, OFF, ON, OUTLINE
from gerd.storage.local import finish_in_processes

ROOT = Path(__file__).parents[2]
PACKAGES = sorted(path.parent.name for path in (ROOT / "gerd").glob("*/__init__.py"))
DOCUMENTS = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md"))]
NOT_RUN = re.compile(r"^\s*(make|pip|git clone)\b")  # they build the very environment that the tests run in
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(document: Path) -> list[tuple[str, str]]:
    return FENCE.findall(document.read_text("utf-8"))


@pytest.fixture
def reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a reader of the documents sits: in a folder with the example configs. Datasets are made in this process."""
    (tmp_path / "configs").symlink_to(ROOT / "configs")
    (tmp_path / "docs").mkdir()
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "gerd").write_text(f"#!/bin/sh\nexec '{COMMAND[0]}' -c '{COMMAND[2]}' \"$@\"\n")
    (tmp_path / "bin" / "gerd").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    alone = lambda job, numbers, _, progress: finish_in_processes(job, numbers, 1, progress)  # noqa: E731
    monkeypatch.setattr("gerd.storage.generate.finish_in_processes", alone)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run_line(line: str) -> None:
    """A line of a terminal: `gerd` in this process, which has the libraries already; what needs a shell, in one."""
    words = shlex.shlex(line, posix=True, punctuation_chars=True)
    words.whitespace_split = True
    command = list(words)
    if command[:1] == ["gerd"] and not any(set(word) <= set("();<>|&") for word in command):
        assert run_here(*command[1:]) == 0, line
    else:
        result = subprocess.run(["sh", "-euc", line], capture_output=True, text=True, timeout=DEADLINE)
        assert result.returncode == 0, f"{line}\n{result.stderr}"


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
            for line in text.replace("\\\n", " ").splitlines():
                if not NOT_RUN.match(line):
                    run_line(line)
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


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda d: d.name)
def test_links_are_titles_and_not_file_names(document: Path) -> None:
    text = FENCE.sub("", document.read_text("utf-8"))
    assert re.findall(r"\[`?[^\]\s]+\.(?:md|py|yaml)`?\]\([^)]*\)|\[`?[\w./-]*/`?\]\([^)]*\)", text) == []


def test_the_citation_names_this_version_and_the_papers() -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    assert f"version = {{{gerd.__version__}}}" in text
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    papers = [cited["preferred-citation"], *cited["references"]]
    (arxiv,) = (each["value"].removeprefix("arXiv:") for each in papers[0]["identifiers"])
    for name in (arxiv, *(paper["doi"] for paper in papers[1:])):
        assert f"{{{name}}}" in text


def test_files_that_the_documents_name_exist() -> None:
    """Paths begin at the repository's root or in gerd/, at one of its packages."""
    first = "|".join(["gerd", "configs", "docs", "tests", "examples", "benchmarks", *PACKAGES])
    makefile = (ROOT / "Makefile").read_text("utf-8")
    for document in DOCUMENTS:
        text = FENCE.sub("", document.read_text("utf-8"))
        quoted = re.findall(rf"`((?:{first})/[\w./-]*)`", text)
        for name in quoted + re.findall(rf"(?<![\w/(.`-])((?:{first})/[\w/-]+\.(?:md|py))", text):
            assert (ROOT / name).exists() or (ROOT / "gerd" / name).exists(), f"{document.name}: {name}"
        for target in re.findall(r"`make ([a-z-]+)`", text):
            assert re.search(rf"^{target}:", makefile, re.MULTILINE), f"{document.name}: make {target}"


def test_what_a_change_touches_is_where_it_is_said_to_be() -> None:
    """`NAME` of (or in) `FILE`: the file has a line that begins with the name, as what it defines does."""
    text = " ".join((ROOT / "CONTRIBUTING.md").read_text("utf-8").split())
    named = re.findall(r"`(\w+)` (?:of|in) `(\S+\.(?:py|yml))`", text)
    assert len(named) > 10
    for name, file in named:
        path = ROOT / file if (ROOT / file).exists() else ROOT / "gerd" / file
        pattern = rf"^(?:def |class |@\w+\.?\w*\ndef )?{name}\b"
        assert re.search(pattern, path.read_text("utf-8"), re.MULTILINE), f"{file}: {name}"


def test_the_table_of_packages_has_them_all() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    assert sorted(re.findall(r"^\| `(\w+)` \| ", text, re.MULTILINE)) == PACKAGES


def test_the_picture_shows_the_example() -> None:
    file = ROOT / "docs" / "bouncing.gif"
    assert file.stat().st_size < 400_000
    recording = gerd.simulate(gerd.load(ROOT / "configs" / "bouncing.yaml"))
    with Image.open(file) as pages:
        assert pages.n_frames == recording.steps
        zoom = pages.width // (2 * recording.width)  # the brightness on the left, the events on the right
        for step in (0, 30, 59):
            pages.seek(step)
            shown = np.asarray(pages.convert("RGB"))[: recording.height * zoom : zoom, -recording.width * zoom :: zoom]
            off, on = recording.frames(step, step + 1)[0].numpy()
            for colour, there in ((OFF, off & ~on), (ON, on & ~off), (BACKDROP, ~on & ~off)):
                seen = (shown == colour).all(-1)
                assert not (seen & ~there).any(), "make the picture again, as the README says"
                assert seen.sum() > there.sum() / 2  # the rest is below outlines, paths and boxes
            assert (shown == OUTLINE).all(-1).any()


def test_the_references_are_up_to_date(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(ROOT / "docs")
    main = runpy.run_path(str(ROOT / "docs" / "make_reference.py"))["main"]

    def run(*options: str) -> int:
        monkeypatch.setattr(sys, "argv", ["make_reference.py", *options])
        return int(main())

    assert run("--check") == 0, capsys.readouterr().err
    main.__globals__["FOLDER"] = tmp_path
    assert run("--check") == 1
    assert run() == 0
    for name in ("config.md", "commands.md"):
        assert run("--check") == 0
        assert (tmp_path / name).read_text("utf-8") == (ROOT / "docs" / name).read_text("utf-8")
        (tmp_path / name).write_text("old")
        assert run("--check") == 1
        run()


def test_the_reference_of_commands_has_what_help_says() -> None:
    """Every option that the program itself lists stands on the page, with its help."""
    page = (ROOT / "docs" / "commands.md").read_text("utf-8")
    sections = dict(re.findall(r"^## `([\w ]+)`\n(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL))
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in re.findall(r"^\|.*$", page, re.MULTILINE)} == {4}
    commands = {}
    for name, command in get_command(app).commands.items():
        below = getattr(command, "commands", None)  # of a group such as `bench`
        commands |= {name: command} if below is None else {f"{name} {word}": one for word, one in below.items()}
    assert sections.keys() == commands.keys()
    for name, command in commands.items():
        for parameter in command.params:
            shown = parameter.metavar if parameter.param_type_name == "argument" else parameter.opts[-1]
            assert (shown or parameter.name.upper()).replace("|", "\\|") in sections[name]
            assert parameter.name == "help" or parameter.help in sections[name]


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
