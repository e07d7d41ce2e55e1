"""Commands on releases: made, read back, compared, proved."""
