"""Results of a reader study: answers as rows, statistics, pages."""
