"""OpenAI's models as deployments of an Azure resource, by openai's own Azure client."""
