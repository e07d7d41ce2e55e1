"""The reading room: people accept, rate, compare, rank and draw; frozen studies, their answers and what these say."""
