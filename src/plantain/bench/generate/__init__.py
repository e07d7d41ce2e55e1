"""Generation of outputs for a benchmark: editors, baselines, imported files."""
