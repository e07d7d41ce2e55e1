"""Med-Banana: a recipe becomes a run of judged edits."""
