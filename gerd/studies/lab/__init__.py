"""What studies share, from a study's name to its report.

`running` finds a study by its name; `experiment` trains, tests and keeps its networks, with the stimuli, the data and
the loop of `training`; `folder` holds the files and `results` says what is in them; `comparison` and `drawing` make the
report.
"""
