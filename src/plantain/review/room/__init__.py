"""The reading room itself: the server that hands out cases and takes answers, and its pages."""
