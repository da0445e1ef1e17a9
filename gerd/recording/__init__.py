"""Events and ground truth as one `Recording`, and the calls that make one: `simulate`, batches, windows.

A config and an index go in; recordings come out. What can be derived from the ground truth (T, boxes, masks, flow) is
computed when it is asked for, and not stored.
"""
