"""A pilot: a few tasks of a plan, what they teach, and whether the whole is worth beginning."""
