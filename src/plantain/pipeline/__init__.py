"""Builds after Med-Banana-50K: plan a recipe's tasks, edit, judge, and record them in a run."""
