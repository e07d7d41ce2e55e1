"""Editors at work on a benchmark: arms, baselines, outputs of elsewhere."""
