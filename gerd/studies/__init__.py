"""Questions asked with this program: stimuli, networks, a measure, a report; one module for each question.

A study computes what can be continued after a kill, and draws a report from what was computed. `models` are those of
the paper, public as `gerd.models`; `lab` holds what studies share. A new study is a new module here, with `SIZES`,
`compute` and `report`, and its name in `lab.running`.
"""
