"""Files: opening without following links, durable writing, tables, keys and what is installed."""
