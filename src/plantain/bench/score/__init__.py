"""What is measured of every output: metrics, judges, attention."""
