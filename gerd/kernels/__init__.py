"""The backends: scenes in, events out, the same bits from each."""
