"""The Python interface: plan, run and read a build, and evaluate an editor."""
