"""What studies share: training loops, the folder with results, comparisons, drawings, and how a study is run."""
