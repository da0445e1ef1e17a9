"""How the API page reads the source: a comment beside a field documents it, and options become a list.

    width: int  # pixels

in a class is the field's documentation, and lines such as `stride: from window to window` in a class's docstring,
one for each option with what follows indented, are shown as a list.
"""

from __future__ import annotations

import re
from typing import Any

import griffe

OPTION = re.compile(r"^(\w+(?:, \w+)*): ", re.MULTILINE)


class Docstrings(griffe.Extension):
    def on_attribute(self, *, attr: griffe.Attribute, **_: Any) -> None:
        comment = re.search(r"  # (.*)$", attr.source)
        if comment and not attr.docstring and attr.parent is not None and attr.parent.is_class:
            text = comment[1][0].upper() + comment[1][1:] + "."
            attr.docstring = griffe.Docstring(text, parent=attr)

    def on_class(self, *, cls: griffe.Class, **_: Any) -> None:
        if cls.docstring:
            cls.docstring.value = OPTION.sub(r"- `\1`: ", cls.docstring.value)
