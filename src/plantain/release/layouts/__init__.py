"""One module per layout: each writes its files from the plan, in any number of sittings, always the same bytes."""
