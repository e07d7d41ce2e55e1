"""The prompts of hosted models: templates that a clinician can read and edit, and how they are filled in."""
