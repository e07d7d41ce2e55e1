"""Gemini models of a Google Cloud project, by google-genai: the same requests, signed with the cloud's credentials."""
