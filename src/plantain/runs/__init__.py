"""Open a run of any kind for model calls: terms, budget, consent, client, and stopping."""
