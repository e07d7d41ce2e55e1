"""From raw pairs to a benchmark: alignment, descriptions, regions."""
