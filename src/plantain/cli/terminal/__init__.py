"""What all commands share: how they are found and called, progress, Ctrl-C."""
