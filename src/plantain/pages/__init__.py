"""Shared parts of all result pages: numbers as text, figures, small images, and writing."""
