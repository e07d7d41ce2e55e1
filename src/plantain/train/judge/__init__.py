"""Learning to judge: a vision-language model on the verdicts of a run or a release."""
