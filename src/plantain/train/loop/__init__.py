"""The loop of every training: steps, learning rates, averages, checkpoints."""
