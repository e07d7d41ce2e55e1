"""What `import plantain` gives: a build planned, run and read, and an editor measured, from Python."""
