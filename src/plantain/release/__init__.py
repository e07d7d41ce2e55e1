"""A run's journal as a dataset that others can use: layouts, proof, and reading a release back."""
