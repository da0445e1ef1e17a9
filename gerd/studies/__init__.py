"""Studies: one file for each question. Each computes numbers into a folder, and draws a report from them."""
