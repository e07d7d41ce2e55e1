"""Measure how reliable a judge is, by controls, planted defects and repeats; and judge stored edits again."""
