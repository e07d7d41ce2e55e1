"""What a provider says of its limits: in the error that refuses a call, and in advance."""
