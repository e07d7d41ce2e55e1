"""Sources: readers that add real images to a catalogue. Import the module you need."""
