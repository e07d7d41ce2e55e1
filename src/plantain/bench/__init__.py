"""Measuring models: benchmarks, their outputs, scores and leaderboards."""
