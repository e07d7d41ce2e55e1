"""The sections about models of recipes and settings files: limits, providers, roles, consent."""
