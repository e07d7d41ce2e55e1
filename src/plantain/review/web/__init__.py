"""The web server of reader studies and of the viewer, and the pages that both share."""
