"""The batch transport: calls of many tasks collected into jobs, at half the price and within a day.

docs/design/batch.md describes how a request is found again after a kill.
"""
