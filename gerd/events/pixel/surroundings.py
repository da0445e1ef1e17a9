"""What surrounds the pixels: the events of a backend in, those that the camera gives out.

A backend knows the rules of a pixel, background noise and event noise. Everything else comes here, after it and the
same for all backends: sources add events, then filters act on all of them in order of time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from gerd.events.pixel.filters import FILTERS
from gerd.events.pixel.sources import SOURCES
from gerd.events.shared import Chunk
from gerd.plan.plan import Pixel
from gerd.scene.scenes import Scenes


def has_surroundings(pixel: Pixel) -> bool:
    """Whether there is anything for `surrounded` to do."""
    return any(part.is_there(pixel) for part in (*SOURCES, *FILTERS))


def surrounded(scenes: Scenes, chunks: Iterator[Chunk]) -> Iterator[Chunk]:
    """The chunks of a backend with what sources add and filters leave."""
    sources = [source for source in SOURCES if source.is_there(scenes.pixel)]
    made: dict[int, list[Callable[[Chunk], Chunk]]] = {}
    for chunk in chunks:
        for source in sources:
            chunk = chunk.with_more(source.keys(scenes, chunk.row, chunk.steps), source.number)
        if chunk.row not in made:
            made[chunk.row] = [each.make(scenes, chunk.row) for each in FILTERS if each.is_there(scenes.pixel)]
        for apply in made[chunk.row]:
            chunk = apply(chunk)
        yield chunk
