"""Results of a study: rows, figures, pages."""
