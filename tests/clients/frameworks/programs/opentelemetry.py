TITLE = "OpenTelemetry"
PACKAGES = ["opentelemetry-sdk"]

import json

import given
from opentelemetry.sdk.trace import TracerProvider

provider = TracerProvider()


def work():
    tracer = provider.get_tracer("agent")
    with tracer.start_as_current_span("chat scripted", attributes={"gen_ai.operation.name": "chat"}):
        pass
    asked = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search", "gen_ai.tool.call.arguments": json.dumps(given.ARGUMENTS)}
    with tracer.start_as_current_span("execute_tool search", attributes=asked) as span:
        span.set_attribute("gen_ai.tool.call.result", given.search(**given.ARGUMENTS))
