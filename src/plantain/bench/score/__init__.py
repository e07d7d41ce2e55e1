"""Scores of a benchmark's outputs: metrics, judges, attention."""
