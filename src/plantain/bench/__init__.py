"""Measuring models: the benchmark's own walk, and how far a judge can be trusted."""
