"""Offline models: a template writer, a procedural editor and an instrument judge."""
