"""Files: opening and writing without following links, tables, keys and installed packages."""
