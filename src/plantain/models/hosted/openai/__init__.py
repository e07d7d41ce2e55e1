"""OpenAI by its SDK: writer, editor and judge; and servers that speak its chat format."""
