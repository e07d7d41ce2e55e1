"""Tables, figures, ranks and pages made from the scores of a benchmark."""
