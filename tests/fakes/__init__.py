"""Loopback servers that speak the providers' wire formats, with scripted latency, limits and faults."""
