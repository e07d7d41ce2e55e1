"""Where heavy work runs: this machine's processes, or the workers of a Ray cluster. Work is a function and arguments.

Journal, admission, money and hosted calls stay in the one process that owns the run; a worker keeps nothing but
loaded weights.
"""
