"""Programs of the provider `process` for models with an environment of their own; they import nothing of plantain."""
