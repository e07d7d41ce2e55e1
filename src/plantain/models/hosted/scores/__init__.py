"""Scores that a judge gives in words or in JSON of its own: read where they are plain, and never guessed."""
