"""What is learned from: pairs of a benchmark or a release, and the originals that a release names."""
