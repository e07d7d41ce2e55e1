"""Opening a run of any kind: terms, budget, consent, client, and stopping."""
