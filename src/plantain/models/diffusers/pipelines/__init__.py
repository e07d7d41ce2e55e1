"""One module for each way of running open weights as an editor; each has a class `Runner`, and needs torch."""
