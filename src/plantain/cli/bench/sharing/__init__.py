"""Commands by which a benchmark and what was measured on it pass from hand to hand."""
