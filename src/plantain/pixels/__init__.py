"""Pixels: decoding, encoding, preparing, blending and grain. Import the module you need."""
