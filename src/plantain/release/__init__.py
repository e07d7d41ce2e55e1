"""Releases: export a run as a dataset, prove and verify it, and import published datasets."""
