"""Prepared images: ingest, privacy gate, quarantine, near duplicates, groups, withdrawal."""
