"""Under which terms each part of a release may be passed on."""
