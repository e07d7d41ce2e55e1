"""The instrument judge's measurements: the change of a pair of images, and one module for each criterion."""
