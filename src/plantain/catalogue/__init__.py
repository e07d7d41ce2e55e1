"""Catalogues of prepared images: ingest, privacy gate, quarantine, near duplicates, groups, withdrawal."""
