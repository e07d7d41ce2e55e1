"""What a run's calls cost, what it has spent, and bills."""
