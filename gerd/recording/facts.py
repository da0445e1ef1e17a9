"""Facts as a notebook shows them: names and values in, an HTML table out."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape


def table(facts: Mapping[str, object]) -> str:
    """A row for each fact; nothing in it is taken for HTML."""
    cell = 'style="text-align:left"'
    rows = (f"<tr><th {cell}>{escape(str(k))}</th><td {cell}>{escape(str(v))}</td></tr>" for k, v in facts.items())
    return f"<table>{''.join(rows)}</table>"
