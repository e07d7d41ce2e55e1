"""Editions of a benchmark: versions, differences, what is handed on, and what is kept back."""
