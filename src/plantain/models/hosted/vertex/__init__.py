"""Gemini models of a Google Cloud project, the same requests, signed with the cloud's credentials."""
