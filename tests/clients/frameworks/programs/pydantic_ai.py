TITLE = "Pydantic AI"
PACKAGES = ["pydantic-ai-slim[openai]"]

import given
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

task = given.task
agent = Agent(OpenAIChatModel("scripted", provider=OpenAIProvider(base_url=f"{given.MODEL}/v1", api_key="none")), tools=[given.search])
