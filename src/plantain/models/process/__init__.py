"""Editors and judges that need an environment of their own: `process/NAME` talks to another program through files."""
