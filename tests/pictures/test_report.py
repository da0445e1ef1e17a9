"""A report as a page: what is wide is told from what is long."""

from __future__ import annotations

from pathlib import Path

from gerd.pictures.report import as_html


def test_cells_with_text_have_several_lines_and_those_with_numbers_one(tmp_path: Path) -> None:
    """A sentence on one line would push the columns behind it out of the page."""
    number, sentence = "0.81 (0.72 to 0.89)", "the side changes by a quarter of a pixel in each step, either way"
    page = as_html(f"# Title\n\n| a | b |\n| --- | --- |\n| {number} | {sentence} |\n", tmp_path)
    assert f"<td>{number}</td>" in page
    assert f'<td class="words">{sentence}</td>' in page
