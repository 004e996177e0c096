TITLE = "smolagents"
PACKAGES = ["smolagents[openai]"]

import given
from smolagents import OpenAIServerModel, ToolCallingAgent, tool

task = given.task
agent = ToolCallingAgent(tools=[tool(given.search)], model=OpenAIServerModel("scripted", api_base=f"{given.MODEL}/v1", api_key="none"))
