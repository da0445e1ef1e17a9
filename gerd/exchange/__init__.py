"""Recordings for other people's programs, and theirs for ours: file formats, live streams, the authors' own files.

Recordings go in; files, packets or lines come out, in units that the other side expects. What a format cannot hold is
refused with a clear error, and never cut off.
"""
