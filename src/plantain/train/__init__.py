"""Train on edits: fine-tune an editor on pairs, train it on preferences, and measure what edits add to a classifier."""
