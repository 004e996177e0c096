TITLE = "CrewAI"
PACKAGES = ["crewai"]

import os

os.environ |= {"CREWAI_DISABLE_TELEMETRY": "true", "CREWAI_TRACING_ENABLED": "false", "OTEL_SDK_DISABLED": "true"}

import given
from crewai import LLM, Agent, Crew, Task
from crewai.tools import tool

# Its client for OpenAI accepts no other names of models.
llm = LLM(model="openai/gpt-4o-mini", base_url=f"{given.MODEL}/v1", api_key="none")
reader = Agent(role="reader", goal="Search.", backstory="You search.", tools=[tool("search")(given.search)], llm=llm)
crew = Crew(agents=[reader], tasks=[Task(description=given.task, expected_output="What was found.", agent=reader)])
