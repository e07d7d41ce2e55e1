"""Shared parts of all commands: groups, options, tables, progress and endings."""
