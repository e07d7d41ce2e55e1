"""Anatomy maps: where the structures of each modality lie in an image, found by classical image processing."""
