"""Preparation of a benchmark from raw pairs: alignment, descriptions, regions."""
