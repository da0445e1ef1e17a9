"""GERD: event-camera recordings of 2D shapes under exactly controlled motion, with the exact ground truth.

    text ─config▶ Config ─plan▶ Plan ─scene▶ Scenes ─events▶ events ─recording▶ Recording ─storage▶ dataset

The public names stand in `__init__.pyi`, and nowhere else. Each is imported at its first use, so that `import gerd`
costs almost nothing. The packages below it have to be imported by their names.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
