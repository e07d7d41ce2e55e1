"""Networks that a metric looks through; each is loaded on use."""
