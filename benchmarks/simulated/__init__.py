"""Shared by benchmarks and tests: a clock that jumps, and providers that enforce limits."""
