"""Submissions to a leaderboard: packed from a run, checked, and rescored by whoever holds the benchmark."""
