TITLE = "LangChain and LangGraph"
PACKAGES = ["langchain", "langchain-openai"]

import given
from langchain.agents import create_agent
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI

graph = create_agent(ChatOpenAI(model="scripted", base_url=f"{given.MODEL}/v1", api_key="none"), tools=[tool(given.search)])
inputs = {"messages": [{"role": "user", "content": given.task}]}
