"""Learning probes from labelled pictures, and what a probe can say about edits: separability and utility."""
