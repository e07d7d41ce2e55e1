"""Downstream utility: does training a classifier with edits help on real held-out images?"""
