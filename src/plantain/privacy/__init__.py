"""Privacy: burned-in text, faces, licences, and permission to send an image to a hosted model."""
