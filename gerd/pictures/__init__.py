"""Recordings to figures and videos.

A recording goes in; matplotlib axes, figures, GIF, MP4 or HTML come out. x points right and y down, and a polarity has
the same colour everywhere. Only `plot` touches pyplot, and draws on axes of the caller; the others open no window
and change no figure but their own.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(__name__, ["plot"])  # as gerd.plot, at its first use
