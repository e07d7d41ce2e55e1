"""Commands on runs: planned, built, watched, opened again."""
