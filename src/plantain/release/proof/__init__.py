"""What proves a release: manifest, sums, provenance, and the check of all of it."""
