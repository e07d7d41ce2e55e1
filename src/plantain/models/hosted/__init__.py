"""Models behind an address: Gemini, OpenAI and servers that speak like it, their batch jobs and our prompts."""
