"""A published release back into a journal."""
