"""Looking inside open editors: where their attention lay while they edited."""
