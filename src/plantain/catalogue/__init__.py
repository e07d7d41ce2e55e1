"""Prepared pictures: ingest, gate, quarantine, near duplicates, groups, withdrawal."""
