"""Recordings to batches of tensors, from a dataset on disk or from an endless stream, with labels.

One definition of items and labels serves both. An item is a function of its number and a batch of its place, so that
workers, ranks and restarts do not show.
"""
