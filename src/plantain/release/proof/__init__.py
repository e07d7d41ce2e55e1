"""Proof that a release is complete and unchanged: manifest, checksums, provenance, and their verification."""
