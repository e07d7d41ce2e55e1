"""`plantain view`: anything that plantain makes, to look around in; nothing is written to it but thumbnails."""
