"""Recordings to figures and videos.

A recording goes in; matplotlib axes, figures, GIF, MP4 or HTML come out. x points right and y down, and a polarity has
the same colour everywhere. Nothing opens a window or changes a figure of the caller.
"""
