"""Record the attention of open editors while they edit."""
