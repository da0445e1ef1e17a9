"""Hypothesis' profile and the number of threads, for all tests."""

from __future__ import annotations

import torch
from hypothesis import settings

settings.register_profile("gerd", deadline=None, derandomize=True, database=None, max_examples=40)
settings.load_profile("gerd")
torch.set_num_threads(1)  # the frames are small, and pytest-xdist runs several tests at once
