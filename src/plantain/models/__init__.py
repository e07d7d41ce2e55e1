"""Adapters: every model that can fill a role, hosted, local or offline."""
