"""Measurements that the instrument judge takes from two images; its own view of the anatomy, no renderer's."""
