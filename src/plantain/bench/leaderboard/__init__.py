"""Tables, figures, ranks and pages over the scores."""
