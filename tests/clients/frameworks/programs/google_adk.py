TITLE = "Google ADK"
PACKAGES = ["google-adk"]

import given
from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm, LlmResponse
from google.genai import types


class Scripted(BaseLlm):
    """Asks for one call, and then ends."""

    async def generate_content_async(self, llm_request, stream=False):
        has_result = any(part.function_response for content in llm_request.contents for part in content.parts)
        part = types.Part.from_text(text="done") if has_result else types.Part.from_function_call(name="search", args=given.ARGUMENTS)
        yield LlmResponse(content=types.Content(role="model", parts=[part]))


task = given.task
agent = LlmAgent(name="reader", model=Scripted(model="scripted"), tools=[given.search])
