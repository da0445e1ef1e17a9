"""Which symmetries a model respects: a transformation of the scene, its action on an output, errors, statistics.

A model and stimuli go in; numbers with intervals come out. The transformed stimulus is rendered anew, never warped. A
number and the verdict on it are two functions.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(__name__, ["measure"])  # as gerd.measure, at its first use
