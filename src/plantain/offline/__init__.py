"""Offline models: a template writer, a procedural editor and an instrument judge. Named for what they are."""
