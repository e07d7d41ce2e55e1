"""Queries of the journal for other packages, one function each: no other package contains SQL."""
