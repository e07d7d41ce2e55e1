"""A run as one page: tables, figures and a gallery in a single HTML file that opens from disk (`report.page`)."""
