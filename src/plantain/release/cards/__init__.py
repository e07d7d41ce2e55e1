"""Documents of a release: dataset card, datasheet, Croissant, citation."""
