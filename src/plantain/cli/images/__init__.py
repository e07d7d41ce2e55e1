"""Commands on pictures: reading them in, holding them back, taking them out."""
