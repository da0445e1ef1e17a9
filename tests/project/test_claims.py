"""Every figure of the documents has something that answers for it, and what makes figures again notices false ones."""

from __future__ import annotations

import re
import runpy
import shlex
import sys
from pathlib import Path

import make_claims
import pytest
from claims import COMMANDS, GIVEN, Claim, Command
from make_claims import DOCUMENTS, Said, holds, phrase_pattern, readable, said_in, unanswered

from gerd.studies.lab.running import STUDIES

ROOT = Path(__file__).parents[2]
NAMES = [file.relative_to(ROOT).as_posix() for file in DOCUMENTS]
REPORTS = sorted((ROOT / "docs" / "studies").glob("*/report.md"))


def text_of(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


@pytest.mark.parametrize("name", NAMES)
def test_every_figure_is_answered_for(name: str) -> None:
    assert unanswered(name, text_of(name), GIVEN.get(name, [])) == []


def test_claims_and_their_marks_belong_together() -> None:
    marked = {said.claim for name in NAMES for said in said_in(name, text_of(name))}
    listed = [claim for command in COMMANDS for claim in command.claims]
    assert marked == set(listed)
    assert len(listed) == len(set(listed))


def test_commands_are_there_and_write_what_is_read() -> None:
    for command in COMMANDS:
        program = shlex.split(command.line)[1]
        text = text_of(program)
        assert f"python {program}" in text
        assert ('"--json"' in text) == ("{json}" in command.line)


def test_what_is_given_stands_in_its_document() -> None:
    """And with a figure in it: what is no longer said does not stay on the list."""
    assert set(GIVEN) <= set(NAMES)
    for name, phrases in GIVEN.items():
        shown = readable(text_of(name))
        for phrase in phrases:
            found = phrase_pattern(phrase).search(shown)
            assert found, f"{name}: {phrase}"
            assert make_claims.FIGURE.search(found[0]), f"{name}: {phrase}"


MEASURED_ON = "Measured on 2026-11-17 on an AMD EPYC."
MARK = "<!-- claim: finer -->"


@pytest.mark.parametrize(
    "figure",
    [
        *("3.3 ms", "24 µs", "1.2 h", "ten minutes", "78 %", "0.8 px", "0.8 pixels off"),
        *("1.7 ×", "2 185 ×", "three times as much", "ten-fold", "a factor of 1.4"),
        *("122 MB", "840 MB/s", "2.2 to 2.4 bytes per event"),
        *("2430 /s", "8 600 recordings a second", "2 million events per second"),
    ],
)
def test_a_figure_that_nobody_answers_for_is_found(figure: str) -> None:
    text = f"# A page\n\nIt is fast.\n\nIt takes\n{figure} here.\n"
    (found,) = unanswered("README.md", text)
    assert found.startswith("README.md:6: ")
    assert unanswered("README.md", text.replace(figure, f"{figure} {MARK}")) == []
    assert unanswered("README.md", text.replace("It takes", MEASURED_ON)) == []
    assert unanswered("README.md", text, [f"takes {figure}"]) == []
    assert unanswered("README.md", f"```sh\n{figure}\n```\n") == []


@pytest.mark.parametrize(
    "text",
    [
        f"It takes 3 ms.\n\n{MEASURED_ON}\n",  # the date is in another paragraph
        f"{MEASURED_ON}\n\nIt takes 3 ms.\n",
        "It took 3 ms on 2026-11-17.\n",  # on what?
        "It took 3 ms on an AMD EPYC.\n",  # when?
        f"It takes 3 ms, which is 1.7 × {MARK} the other.\n",  # the mark is that of the nearest figure
        f"- It takes 3 ms.\n- {MEASURED_ON}\n",  # nor in another item
        f"{MEASURED_ON}\n\n| a | b |\n| --- | --- |\n| 4 | 5 |\n\n- It takes 3 ms.\n",  # the list comes after the table
        f"| a | b |\n| --- | --- |\n| 1.7 × {MARK} | 3 ms |\n",
        "## [A study](study/report.md)\n\nText.\n\n## Another section\n\nIt takes 3 ms.\n",
    ],
)
def test_what_answers_for_one_figure_does_not_for_another(text: str) -> None:
    (found,) = unanswered("README.md", text)
    assert ": 3 ms: " in found


@pytest.mark.parametrize(
    "text",
    [
        f"{MEASURED_ON}\n\n| a | b |\n| --- | --- |\n| 3 ms | 4 × |\n",
        f"{MEASURED_ON}\n\n- It takes 3 ms.\n- And 4 ms.\n",
        "## [A study](study/report.md)\n\nText.\n\nIt is 3 px off.\n",
        "A frame of 300×300 pixels, 3 px per step, 60 steps, [a link](3%20ms.md).\n",
    ],
)
def test_what_is_answered_for_is_not_reported(text: str) -> None:
    assert unanswered("README.md", text) == []


def test_what_a_document_says_is_read_from_it() -> None:
    text = f"It takes 2.2 to\n2.4 {MARK} bytes, three times {MARK} as much,\n2 185 × {MARK}, and 2 million {MARK}.\n"
    found = [(said.line, said.low, said.high) for said in said_in("README.md", text)]
    assert found == [(1, 2.2, 2.4), (2, 3, 3), (3, 2185, 2185), (3, 2e6, 2e6)]
    apart = said_in("README.md", f"It takes 2.2 {MARK} to 2.4 {MARK} bytes per event.\n")
    assert [(said.low, said.high) for said in apart] == [(2.2, 2.2), (2.4, 2.4)]
    with pytest.raises(SystemExit, match=r"README.md:3: no number before the claim finer"):
        said_in("README.md", f"It takes 3 ms.\n\nand more {MARK}\n")


@pytest.mark.parametrize(
    ("low", "high", "measured", "right"),
    [
        (2.0, 2.0, [2.0], True),
        (2.0, 2.0, [2.6], True),
        (2.0, 2.0, [2.61], False),
        (2.0, 2.0, [1.54], True),
        (2.0, 2.0, [1.53], False),
        (2.0, 2.0, [2.0, 2.7], False),
        (2.0, 4.0, [3.0], True),
        (2.0, 4.0, [2.0, 4.0], True),
        (2.0, 4.0, [2.0, 2.5], False),  # says more than there is
        (2.0, 4.0, [3.5, 4.0], False),
        (2.0, 4.0, [2.0, 6.0], False),
    ],
)
def test_bounds(low: float, high: float, measured: list[float], right: bool) -> None:
    said = Said("README.md", 1, "finer", low, high, 0, 1)
    assert holds(said, measured, Claim(lambda found: found, factor=1.3)) == right
    apart = Claim(lambda found: found, apart=0.1)
    assert holds(Said("README.md", 1, "finer", 5.0, 5.0, 0, 1), [5.09], apart)
    assert not holds(Said("README.md", 1, "finer", 5.0, 5.0, 0, 1), [5.11], apart)


def command_that(program: str, *names: str, long: bool = False) -> Command:
    reads = {name: Claim(lambda found, name=name: float(found[name]), factor=1.1) for name in names}
    return Command(f"python -c {shlex.quote(program)} {{json}}", reads, long)


WRITES = "import json, sys; json.dump({}, open(sys.argv[1], 'w'))"


def test_the_claims_are_made_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One that holds, one that is off, one that cannot be read; a command that fails stops none of the others."""
    page = tmp_path / "page.md"
    page.write_text("\n".join(f"{name}: 2 × <!-- claim: {name} -->" for name in ("right", "off", "lost", "slow")))
    commands = [
        command_that("import sys; sys.exit('no such thing')", "lost"),
        command_that(WRITES.format("{'right': 2.1, 'off': 3}"), "right", "off", "missing"),
        command_that(WRITES.format("{'slow': 2}"), "slow", long=True),
    ]

    def main(*arguments: str) -> int:
        return make_claims.main([*arguments], commands, [page], tmp_path)

    assert main() == 1
    shown = capsys.readouterr().out
    assert re.search(r"^FAILED: .*exit code 1: no such thing", shown, re.MULTILINE)
    assert re.search(r"^holds +page.md:1  right: 2; 2.1 \(1.818 to 2.2\)", shown, re.MULTILINE)
    assert re.search(r"^OFF +page.md:2  off: 2; 3 ", shown, re.MULTILINE)
    assert re.search(r"^FAILED: missing cannot be read", shown, re.MULTILINE)
    assert "slow" not in shown
    assert "3 of the claims are off; 1 of 3 commands were not run" in shown

    assert main("slow") == 0
    assert "holds  page.md:4  slow" in capsys.readouterr().out
    assert main("--long") == 1
    assert "page.md:4  slow" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main("unheard-of")
    assert "no such claim: unheard-of" in capsys.readouterr().err


def test_a_page_is_run_as_a_reader_would(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.md"
    blocks = ["```yaml\n# mine.yaml\nsteps: 3\n```", "```sh\npip install .\ncp mine.yaml other.yaml\n```"]
    blocks += ["```python\nx = open('other.yaml').read()\n```", "```python\nprint(x.split()[-1], 'steps')\n```"]
    page.write_text("\n\n".join(blocks))
    main = runpy.run_path(str(ROOT / "docs" / "run_page.py"))["run_page"]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path)
        main(page.read_text())
    assert capsys.readouterr().out == "3 steps\n"


@pytest.mark.parametrize("report", REPORTS, ids=lambda report: report.parent.name)
def test_reports_of_studies_say_when_on_what_and_by_which_command(report: Path) -> None:
    made = re.search(
        r"^Made on (20\d\d-\d\d-\d\d) by `gerd study ([\w-]+)[^`]*`.*? on ([^,]+),", report.read_text("utf-8"), re.M
    )
    assert made
    assert made[2] == report.parent.name
    assert made[2] in STUDIES


@pytest.mark.parametrize("name", STUDIES)
def test_a_study_s_module_is_no_program_and_says_so(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """`python -m gerd.studies.NAME` fails: with exit code 0 it would seem to have run the study."""
    module = f"gerd.studies.{name.replace('-', '_')}"
    monkeypatch.delitem(sys.modules, module, raising=False)
    with pytest.raises((SystemExit, ImportError), match=rf"gerd study {name}|cannot be directly executed"):
        runpy.run_module(module, run_name="__main__")
