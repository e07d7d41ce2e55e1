"""Reader studies, in which people accept, rate, compare, rank and draw; and the viewer of runs and studies."""
