"""Import published releases, pairs and benchmark outputs as runs."""
