"""Proof of a release: manifest, sums, provenance, and their verification."""
