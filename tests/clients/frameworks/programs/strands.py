TITLE = "Strands Agents"
PACKAGES = ["strands-agents[openai]"]

import given
from strands import tool
from strands.models.openai import OpenAIModel

task = given.task
model = OpenAIModel(client_args={"base_url": f"{given.MODEL}/v1", "api_key": "none"}, model_id="scripted")
tools = [tool(given.search)]
