"""Files: opening and writing without following links, tables, keys and what is installed."""
