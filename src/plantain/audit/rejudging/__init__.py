"""Stored attempts judged again: by another judge, or under other prompts; what flips."""
