TITLE = "Microsoft Agent Framework"
PACKAGES = ["agent-framework-core", "agent-framework-openai"]

import given
from agent_framework import Agent
from agent_framework.openai import OpenAIChatCompletionClient

task = given.task
agent = Agent(client=OpenAIChatCompletionClient("scripted", base_url=f"{given.MODEL}/v1", api_key="none"), tools=[given.search])
