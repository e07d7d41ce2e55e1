"""Gemini by google-genai: writer, editor and judge."""
