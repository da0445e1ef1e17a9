"""From the screen to the camera and back: a video to be played before an event camera, and the events of one.

A config in; a lossless video and a file about it out (`write.py`). Then a recording of the screen in, and out come the
camera's view and clock, and a dataset of real events with the truth that was shown (`register.py`). `stimulus.py` says
what is on the screen when, and is all that the two sides share.
"""
