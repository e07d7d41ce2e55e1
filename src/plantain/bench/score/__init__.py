"""Scores of every output: metrics, judges, attention."""
