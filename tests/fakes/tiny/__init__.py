"""Tiny pipelines of random weights, of the same classes as the real ones, built in code.

They run every line that the real weights would run, and draw noise. Latents are an eighth of the image, as in the real
ones. Everything is seeded: the same call, the same weights.
"""
