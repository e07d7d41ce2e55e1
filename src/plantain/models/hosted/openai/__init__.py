"""OpenAI: writer, editor and judge; and servers that speak its chat format."""
