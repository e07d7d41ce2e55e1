"""The journal's ground: connection, lock, blobs, file systems, space."""
