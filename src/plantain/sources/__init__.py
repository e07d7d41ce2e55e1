"""Sources: readers that bring real images into a catalogue. Import the module you need."""
