"""Makes the figures of the documents again, with the commands in `claims.py`, and compares them with what is said.

    python docs/make_claims.py [--long] [CLAIM ...]

Cheap commands run by default, with `--long` the others, too; the names of claims choose the commands that make them.
They run one after the other, and a command that fails is reported and does not stop the rest. The exit code is 1 if a
claim is off or could not be made.

This module also says which figures of a document nobody answers for; a test wants none. A figure is a number with a
unit in which things are measured. It is answered for by

- a mark behind it, `1.7 × <!-- claim: finer -->`, with the name of a claim;
- a date and a machine in the same paragraph, list item or table, or in the paragraph that leads to the list or table;
- the heading of its section, if that links to a study's report, which has its own date and machine;
- `GIVEN` in `claims.py`: phrases with numbers that were chosen, defined or quoted, and not measured.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from claims import COMMANDS, Claim, Command

ROOT = Path(__file__).parent.parent
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
DOCUMENTS += [ROOT / "docs" / "studies" / "index.md"]
LIMIT = 3600  # seconds for one command

WORDS = {"two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10}
NUMBER = rf"(?:\d+(?:[ \u202f]\d{{3}})+|\d+(?:\.\d+)?(?:\s+million)?|\b(?:{'|'.join(WORDS)})\b)"
RANGE = re.compile(rf"(?<![\w.])({NUMBER})(?:\s+to\s+({NUMBER}))?", re.IGNORECASE)
UNITS = r"µs|ms|s|min|h|%|×(?!\s*\d)|times|fold|bytes?|[kMGT]i?B|px(?!\s+per\s+step)|pixels\s+off"
UNITS += r"|seconds?|minutes?|hours?|(?:recordings|events)\s+(?:a|per)\s+second|(?:recordings|core\s+hours)?/s|\$"
FIGURE = re.compile(rf"{RANGE.pattern}(?:\s*|-)(?:{UNITS})(?![\w])|factor\s+of\s+{RANGE.pattern}", re.IGNORECASE)
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
ADDRESS = re.compile(r"(?<=\])\([^)\s]*\)")
COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
MARK = re.compile(r"<!-- claim: (\S+) -->")
DATE = re.compile(r"\b20\d\d-\d\d-\d\d\b")
MACHINE = re.compile(r"\b(?:H200|EPYC)\b")
BEGINS = {"heading": r"#+ ", "table": r"\|", "item": r"\s*(?:[-*]|\d+\.) "}
REPORT = re.compile(r"\]\([\w/.-]*report\.md\)")


@dataclass(frozen=True)
class Said:
    """A figure with a mark: what a document says."""

    document: str
    line: int
    claim: str
    low: float
    high: float  # the same but for a range
    begin: int  # where the figure is in the text
    end: int

    @property
    def figure(self) -> str:
        return f"{self.low:g}" if self.low == self.high else f"{self.low:g} to {self.high:g}"


@dataclass(frozen=True)
class Block:
    """A paragraph, a list item, a table or a heading."""

    kind: str
    begin: int
    end: int


def number(text: str) -> float:
    digits, million, _ = text.lower().partition("million")
    plain = float(WORDS.get(digits, re.sub(r"\s", "", digits)))
    return 1e6 * plain if million else plain


def line_of(text: str, place: int) -> int:
    return text.count("\n", 0, place) + 1


def readable(text: str) -> str:
    """The text with blanks for code blocks, addresses of links and comments, in the same places."""
    for hidden in (FENCE, ADDRESS, COMMENT):
        text = hidden.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)
    return text


def blocks(text: str) -> list[Block]:
    """What a document consists of, in its order."""
    found: list[Block] = []
    place, going_on = 0, False
    for line in readable(text).splitlines(keepends=True):
        kind = next((name for name, begins in BEGINS.items() if re.match(begins, line)), "paragraph")
        if not line.strip():
            going_on = False
        elif going_on and (kind == found[-1].kind == "table" or kind == "paragraph"):
            found[-1] = Block(found[-1].kind, found[-1].begin, place + len(line))
        else:
            found.append(Block(kind, place, place + len(line)))
            going_on = kind != "heading"
        place += len(line)
    return found


def said_in(name: str, text: str) -> list[Said]:
    """The figures of a document that have a mark; a mark without a number before it is an error."""
    shown, parts, found = readable(text), blocks(text), []
    done = 0  # the end of the mark before
    for mark in MARK.finditer(text):
        begin = next((block.begin for block in parts if block.begin <= mark.start() < block.end), mark.start())
        before = list(RANGE.finditer(shown, max(begin, done), mark.start()))
        done = mark.end()
        if not before:
            raise SystemExit(f"{name}:{line_of(text, mark.start())}: no number before the claim {mark[1]}")
        low, high = before[-1][1], before[-1][2] or before[-1][1]
        at = before[-1].span()
        found.append(Said(name, line_of(text, at[0]), mark[1], number(low), number(high), *at))
    return found


def unanswered(name: str, text: str, given: Iterable[str] = ()) -> list[str]:
    """The figures of a document that nobody answers for, as `document:line: figure: the text around it`."""
    shown = readable(text)
    answered = [(said.begin, said.end) for said in said_in(name, text)]
    answered += [found.span() for phrase in given for found in phrase_pattern(phrase).finditer(shown)]
    answered += dated(text)
    result = []
    for figure in FIGURE.finditer(shown):
        begin, end = figure.span()
        if not any(first < end and begin < last for first, last in answered):
            around = " ".join(shown[max(0, begin - 40) : end + 40].split())
            result.append(f"{name}:{line_of(text, begin)}: {' '.join(figure[0].split())}: … {around} …")
    return result


def phrase_pattern(phrase: str) -> re.Pattern[str]:
    """A phrase, however its line is broken."""
    return re.compile(r"\s+".join(map(re.escape, phrase.split())))


def dated(text: str) -> Iterator[tuple[int, int]]:
    """Where a date and a machine stand beside the figures, or a report that has them."""
    lead, before, reported = "", "heading", False
    for part in blocks(text):
        own = text[part.begin : part.end]
        if part.kind == "heading":
            reported = bool(REPORT.search(own))
        elif part.kind == "paragraph":
            lead = own
        elif before not in ("paragraph", part.kind):
            lead = ""
        beside = own if part.kind in ("heading", "paragraph") else lead + own
        if reported or (DATE.search(beside) and MACHINE.search(beside)):
            yield part.begin, part.end
        before = part.kind


def holds(said: Said, measured: list[float], claim: Claim) -> bool:
    """Whether what was measured is what is said; of two ranges both ends have to agree."""
    low, high = least(said.low, claim), most(said.high, claim)
    if not all(low <= value <= high for value in measured):
        return False
    if said.low == said.high or len(measured) == 1:
        return True
    return min(measured) <= most(said.low, claim) and max(measured) >= least(said.high, claim)


def least(value: float, claim: Claim) -> float:
    return value / claim.factor - claim.apart


def most(value: float, claim: Claim) -> float:
    return math.inf if claim.or_more else value * claim.factor + claim.apart


def output_of(command: Command) -> Any:
    """What a command has written: parsed JSON, or text. An error says what went wrong."""
    with tempfile.TemporaryDirectory(prefix="gerd-claims-") as folder:
        file = Path(folder) / "found.json"
        words = [
            sys.executable if word == "python" else word.replace("{json}", str(file))
            for word in shlex.split(command.line)
        ]
        done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=LIMIT)
        if done.returncode:
            last = (done.stderr.strip() or "nothing on standard error").splitlines()[-1]
            raise RuntimeError(f"exit code {done.returncode}: {last}")
        return json.loads(file.read_text("utf-8")) if "{json}" in command.line else done.stdout


def compared(command: Command, said: list[Said]) -> Iterator[tuple[bool, str]]:
    """Run a command; a row for each place where one of its claims is made, and whether it holds."""
    try:
        output = output_of(command)
    except (OSError, RuntimeError, ValueError, subprocess.SubprocessError) as error:
        yield False, f"FAILED: {command.line}: {error}"
        return
    for name, claim in command.claims.items():
        try:
            value = claim.read(output)
        except (KeyError, IndexError, TypeError, ValueError, StopIteration, ZeroDivisionError) as error:
            yield False, f"FAILED: {name} cannot be read from the output of {command.line}: {error!r}"
            continue
        measured = value if isinstance(value, list) else [value]
        shown = " to ".join(f"{end:.4g}" for end in sorted({min(measured), max(measured)}))
        for each in (each for each in said if each.claim == name):
            right = holds(each, measured, claim)
            bounds = f"{least(each.low, claim):.4g} to {most(each.high, claim):.4g}"
            verdict = "holds" if right else "OFF"
            yield right, f"{verdict:5}  {each.document}:{each.line}  {name}: {each.figure}; {shown} ({bounds})"


def main(
    arguments: list[str] | None = None,
    commands: Sequence[Command] = COMMANDS,
    documents: Sequence[Path] = DOCUMENTS,
    root: Path = ROOT,
) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("claims", nargs="*", metavar="CLAIM", help="only the commands that make these")
    parser.add_argument("--long", action="store_true", help="those that take minutes or install packages, too")
    chosen = parser.parse_args(arguments)
    known = {name for command in commands for name in command.claims}
    if unknown := set(chosen.claims) - known:
        parser.error(f"no such claim: {', '.join(sorted(unknown))}; there are: {', '.join(sorted(known))}")
    wanted = [
        c for c in commands if set(chosen.claims) & set(c.claims) or (not chosen.claims and c.long <= chosen.long)
    ]
    said = [each for file in documents for each in said_in(str(file.relative_to(root)), file.read_text("utf-8"))]
    wrong = 0
    for command in wanted:
        print(f"\n{command.line}\nclaim: what is said; what was measured (what is allowed)", flush=True)
        for right, row in compared(command, said):
            print(row, flush=True)
            wrong += not right
    left_out = sum(command not in wanted for command in commands)
    more = f"; {left_out} of {len(commands)} commands were not run" if left_out else ""
    print(f"\n{wrong or 'none'} of the claims {'is' if wrong == 1 else 'are'} off{more}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
