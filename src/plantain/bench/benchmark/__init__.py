"""Benchmarks on disk: samples, regions, reading and writing, checking, describing."""
