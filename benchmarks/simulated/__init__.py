"""What benchmarks and tests share: a clock that jumps, and providers that enforce limits."""
