"""Learning from edits: fine-tuning on pairs, preferences from successes and failures, on a release or a benchmark."""
