"""Questions asked with this program: stimuli, networks, a measure, a report; one module for each question.

A study is a module with `compute`, which trains and tests what is not yet in a folder and gives the results, and with
`report`, which draws figures and tables into a folder and gives the text; its `conclusions` are what the numbers say.
`models` are those of the paper, public as `gerd.models`; `lab` holds what studies share.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(__name__, ["models"])  # as gerd.models, at its first use
