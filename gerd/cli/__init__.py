"""The commands: what `gerd` prints, asks and exits with. The work itself is done by the other packages."""
