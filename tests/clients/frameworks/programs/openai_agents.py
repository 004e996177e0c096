TITLE = "OpenAI Agents SDK"
PACKAGES = ["openai-agents"]

import given
from agents import Agent, OpenAIChatCompletionsModel, function_tool, set_tracing_disabled
from openai import AsyncOpenAI

set_tracing_disabled(True)
task = given.task
client = AsyncOpenAI(base_url=f"{given.MODEL}/v1", api_key="none")
agent = Agent(name="reader", instructions="Search.", tools=[function_tool(given.search)], model=OpenAIChatCompletionsModel(model="scripted", openai_client=client))
