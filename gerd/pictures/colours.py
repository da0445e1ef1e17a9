"""The palette: one colour for each thing that is drawn, in figures, in videos and on the page.

Colours are red, green and blue from 0 to 255, those of lines as they are written in HTML. Colour-blind readers can tell
ON from OFF, and an actor from both.
"""

from __future__ import annotations

Colour = tuple[int, int, int]
BACKDROP: Colour = (250, 250, 248)
OFF: Colour = (213, 94, 0)  # vermilion
ON: Colour = (0, 114, 178)  # blue
BOTH: Colour = (60, 60, 60)
OUTLINE: Colour = (0, 0, 0)
PATH: Colour = (0, 158, 115)  # green
BOX: Colour = (225, 150, 200)  # light purple
EVENTS = (BACKDROP, OFF, ON, BOTH)  # by polarity code: 0 nothing, 1 OFF, 2 ON, 3 both
ACTORS = ("#9030f0", "#3cc864", "#8c1e64", "#a08070", "#dc8cb4", "#545c36")  # actor i has number i mod 6
SERIES = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")  # of charts without events


def shade(colour: Colour) -> tuple[float, float, float]:
    """A colour as matplotlib takes it."""
    red, green, blue = (channel / 255 for channel in colour)
    return red, green, blue
