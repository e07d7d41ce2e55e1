"""Models behind Amazon Bedrock's interface of OpenAI's kind, by openai's own Bedrock client."""
