"""Clouds in front of the providers' formats: sign-in, tokens and signatures."""
