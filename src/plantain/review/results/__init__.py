"""What comes out of a study: rows, figures, pages."""
