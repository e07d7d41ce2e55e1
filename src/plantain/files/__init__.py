"""Files: opening without following links, durable writing, tables, CSV, keys and their redaction."""
