"""Files of events to blocks of rows x, y, t, p, a module for each family of formats; `exchange/reading.py` asks them.

A decoder takes an open file and says what its header tells and how its events are read, a block at a time in the order
of the file. What is damaged it tells to `Damage`, which raises an error or counts it.
"""
