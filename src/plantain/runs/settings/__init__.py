"""What a recipe or a settings file says of models: limits, providers, transport."""
