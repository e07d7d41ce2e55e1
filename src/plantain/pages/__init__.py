"""What every page of results shares: how it words numbers, draws figures, keeps pictures small and is written."""
