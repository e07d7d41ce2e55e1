"""What a benchmark is: samples, regions, reading and writing, checking, describing."""
