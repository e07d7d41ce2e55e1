"""What could tell who somebody is: burned-in text, faces, heads."""
