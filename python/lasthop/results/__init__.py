"""Results: runs, samples of their metrics, stores, and data frames."""
