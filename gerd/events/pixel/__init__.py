"""A pixel and what surrounds it, as numbers that all backends share."""
