"""Outlines and motion as mathematics: shapes in their unit frame, and T(t) with its derivatives in closed form.

Vertices, parameters and times go in; float64 numbers come out, with the same last bit on every machine. Nothing here
knows of configs, chance or pixels. The order of floating-point operations is part of the result: do not change it.
"""
