"""Gemini: writer, editor and judge."""
