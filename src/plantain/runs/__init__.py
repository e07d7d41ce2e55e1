"""What every run shares, whatever it calls models for: its terms, budget, consent and client, and how it stops."""
