"""Agreement, intervals, ranks and paired differences over clusters of images."""
