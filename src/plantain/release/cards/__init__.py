"""What a release says of itself: dataset card, datasheet, Croissant, citation."""
