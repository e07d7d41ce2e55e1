"""A run as one page: tables, figures and a gallery in a single HTML file that opens from disk."""

from plantain.report.page import write_report, write_story

__all__ = ["write_report", "write_story"]
