"""The page that `gerd view` shows on this machine: questions of the browser in, recordings as bytes out.

`answers` knows recordings and no network, `server` the network and no recordings, `web/` is what the browser runs.
What comes from the browser is a stranger's: bounded, checked, and never run.
"""
