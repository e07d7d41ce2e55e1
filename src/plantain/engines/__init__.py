"""Where heavy work runs: this machine's processes, or the workers of a Ray cluster. Work is handed in as functions.

Journal, admission, money and hosted calls stay in the one process that owns the run; a worker holds nothing that
outlives it but weights, which the next one loads again.
"""
