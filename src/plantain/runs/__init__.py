"""What every run shares, whatever it calls models for: its terms, its purse, consent, its desk, and how it stops."""
