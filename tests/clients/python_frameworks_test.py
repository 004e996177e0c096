#!/usr/bin/python3
"""Runs each example of the page on Python frameworks, as it is there, with stand-ins that have the documented interfaces."""

import dataclasses
import os
import pathlib
import re
import sys
import unittest
from unittest import mock

from framework_stand_ins import Thing, examples, run_example, stand_in
from python_case import WithMonitor

ARGUMENTS, RESULT = {"query": "x"}, "found"
NODE = {"langgraph_node": "agent", "langgraph_step": 1, "langgraph_checkpoint_ns": "agent:1"}


def search(query):
    return {"x": RESULT}[query]


class Frameworks(WithMonitor):
    def example(self, title, **names):
        """The calls of the session, the phases of its steps, and how it ended."""
        with mock.patch.dict(os.environ, {"WATCHDOG_SERVER": self.url, "WATCHDOG_SESSION": self.session}):
            run_example(title, names)
        calls = [(event["kind"], event["name"], event.get("args", event.get("text"))) for event in self.told() if event["kind"].startswith("tool_")]
        self.assertEqual(calls, [("tool_call", "search", ARGUMENTS), ("tool_result", "search", RESULT)])
        self.assertEqual(self.told("end")[0]["outcome"], "completed")
        return [event["phase"] for event in self.told("heartbeat") if event.get("source") == "loop"]

    def test_each_example_of_the_page_has_a_test(self):
        self.assertEqual(set(examples()), set(re.findall(r'self\.example\("([^"]+)"', pathlib.Path(__file__).read_text())))

    def test_langchain_and_langgraph(self):
        stand_in("langchain_core.callbacks", BaseCallbackHandler=type("BaseCallbackHandler", (), {}))

        def invoke(inputs, config):
            handler, = config["callbacks"]
            handler.on_chain_start(None, inputs, run_id=1, parent_run_id=None, metadata=NODE, name="agent")
            handler.on_tool_start({"name": "search"}, str(ARGUMENTS), run_id=2, parent_run_id=1, inputs=ARGUMENTS, metadata=NODE)
            handler.on_tool_end(Thing(content=search(**ARGUMENTS)), run_id=2, parent_run_id=1)
        self.assertEqual(self.example("LangChain and LangGraph", graph=Thing(invoke=invoke), inputs={}), ["agent"])

    def test_openai_agents(self):
        class Runner:
            @classmethod
            async def run(cls, agent, task, *, hooks):
                context, tool = Thing(tool_call_id="c1", tool_arguments='{"query":"x"}'), Thing(name="search")
                await hooks.on_llm_start(Thing(), agent, None, [task])
                await hooks.on_tool_start(context, agent, tool)
                await hooks.on_tool_end(context, agent, tool, search(**ARGUMENTS))
        stand_in("agents", RunHooks=type("RunHooks", (), {}), Runner=Runner)
        self.assertEqual(self.example("OpenAI Agents SDK", agent=Thing(name="reader"), task="look"), ["reader"])

    def test_crewai(self):
        handlers = {}

        class BaseEventListener:
            def __init__(self):
                self.setup_listeners(Thing(on=lambda kind: lambda handler: handlers.setdefault(kind, handler)))
        kinds = {name: type(name, (Thing,), {}) for name in ("LLMCallStartedEvent", "TaskCompletedEvent", "ToolUsageErrorEvent", "ToolUsageFinishedEvent", "ToolUsageStartedEvent")}
        stand_in("crewai.events", BaseEventListener=BaseEventListener, **kinds)

        def kickoff():
            for event in (kinds["LLMCallStartedEvent"](agent_role="reader"), kinds["ToolUsageStartedEvent"](event_id="e1", tool_name="search", tool_args=ARGUMENTS),
                          kinds["ToolUsageFinishedEvent"](started_event_id="e1", tool_name="search", tool_args=ARGUMENTS, output=search(**ARGUMENTS))):
                handlers[type(event)](None, event)
        self.assertEqual(self.example("CrewAI", crew=Thing(kickoff=kickoff)), ["reader"])

    def test_pydantic_ai(self):
        async def answer():
            yield Thing(event_kind="part_start")

        async def calls():
            yield Thing(event_kind="function_tool_call", part=Thing(tool_call_id="1", tool_name="search", args=ARGUMENTS))
            yield Thing(event_kind="function_tool_result", part=Thing(tool_call_id="1", part_kind="tool-return", content=search(**ARGUMENTS)))

        async def run(task, *, event_stream_handler):
            for events in (answer, calls):
                await event_stream_handler(Thing(), events())
        self.assertEqual(self.example("Pydantic AI", agent=Thing(run=run), task="look"), ["model"])

    def test_smolagents(self):
        class ActionStep(Thing):
            pass
        stand_in("smolagents", ActionStep=ActionStep)
        callbacks, tool = [], Thing(forward=search)

        def run(task):
            step = ActionStep(step_number=1, error=None, observations=tool.forward(**ARGUMENTS), action_output=None)
            for _, callback in callbacks:
                callback(step, agent=agent)
        agent = Thing(tools={"search": tool}, step_callbacks=Thing(register=lambda kind, callback: callbacks.append((kind, callback))), run=run)
        self.assertEqual(self.example("smolagents", agent=agent, task="look"), ["step"])

    def test_agent_framework(self):
        kinds = {name: type(name, (), {}) for name in ("ChatMiddleware", "FunctionMiddleware")}
        stand_in("agent_framework", **kinds)

        async def run(task, *, middleware):
            context = Thing(function=Thing(name="search"), arguments=ARGUMENTS, result=None)

            async def ask():
                pass

            async def invoke():
                context.result = search(**ARGUMENTS)
            for kind, one, call_next in (("ChatMiddleware", Thing(), ask), ("FunctionMiddleware", context, invoke)):
                processor, = [each for each in middleware if isinstance(each, kinds[kind])]
                await processor.process(one, call_next)
        self.assertEqual(self.example("Microsoft Agent Framework", agent=Thing(run=run), task="look"), ["model"])

    def test_claude_agent_sdk(self):
        @dataclasses.dataclass
        class HookMatcher:
            matcher: object = None
            hooks: list = dataclasses.field(default_factory=list)

        async def query(*, prompt, options):
            async def emit(name, tool_use_id=None, **facts):
                for matcher in options.hooks[name]:
                    for hook in matcher.hooks:
                        await hook({"hook_event_name": name, "session_id": "s", **facts}, tool_use_id, {"signal": None})
            await emit("UserPromptSubmit", prompt=prompt)
            await emit("PreToolUse", "t1", tool_name="search", tool_input=ARGUMENTS)
            await emit("PostToolUse", "t1", tool_name="search", tool_input=ARGUMENTS, tool_response=search(**ARGUMENTS))
            yield "done"
        stand_in("claude_agent_sdk", HookMatcher=HookMatcher, ClaudeAgentOptions=Thing, query=query)
        self.assertEqual(self.example("Claude Agent SDK", task="look", print=lambda message: None), ["tools"])

    def test_google_adk(self):
        class BasePlugin:
            def __init__(self, name):
                self.name = name

        class InMemoryRunner:
            def __init__(self, agent, *, plugins):
                self.agent, self.plugins = agent, plugins

            async def run_debug(self, task):
                call = {"tool": Thing(name="search"), "tool_args": ARGUMENTS, "tool_context": Thing(function_call_id="1")}
                for plugin in self.plugins:
                    await plugin.before_model_callback(callback_context=Thing(agent_name=self.agent.name), llm_request=Thing(contents=[task]))
                    await plugin.before_tool_callback(**call)
                    await plugin.after_tool_callback(**call, result=search(**ARGUMENTS))
        stand_in("google.adk.plugins.base_plugin", BasePlugin=BasePlugin)
        stand_in("google.adk.runners", InMemoryRunner=InMemoryRunner)
        self.assertEqual(self.example("Google ADK", agent=Thing(name="reader"), task="look"), ["reader"])

    def test_strands(self):
        kinds = {name: type(name, (Thing,), {}) for name in ("AfterToolCallEvent", "BeforeModelCallEvent", "BeforeToolCallEvent")}
        stand_in("strands.hooks", **kinds)

        class Agent:
            name = "reader"

            def __init__(self, *, model, tools, hooks):
                self.tools, self.callbacks = tools, {}
                for hook in hooks:
                    hook.register_hooks(Thing(add_callback=self.callbacks.__setitem__))

            def __call__(self, task):
                use = {"toolUseId": "1", "name": "search", "input": ARGUMENTS}
                self.emit("BeforeModelCallEvent")
                self.emit("BeforeToolCallEvent", tool_use=use, cancel_tool=False)
                self.emit("AfterToolCallEvent", tool_use=use, result={"status": "success", "content": self.tools[0](**ARGUMENTS)}, exception=None)

            def emit(self, name, **facts):
                self.callbacks[kinds[name]](kinds[name](agent=self, **facts))
        stand_in("strands", Agent=Agent)
        self.assertEqual(self.example("Strands Agents", model=None, tools=[search], task="look"), ["reader"])

    def test_opentelemetry(self):
        stand_in("opentelemetry.sdk.trace", SpanProcessor=type("SpanProcessor", (), {}))
        processors = []

        def span(number, **attributes):
            one = Thing(name="span", attributes=attributes, context=Thing(span_id=number), status=Thing(status_code=Thing(name="UNSET"), description=None))
            for processor in processors:
                processor.on_start(one, None)
            return one

        def work():
            ended = [span(1, **{"gen_ai.operation.name": "chat"})]
            call = span(2, **{"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search", "gen_ai.tool.call.arguments": ARGUMENTS})
            call.attributes["gen_ai.tool.call.result"] = search(**ARGUMENTS)
            for one in [call, *ended]:
                for processor in processors:
                    processor.on_end(one)
        self.assertEqual(self.example("OpenTelemetry", provider=Thing(add_span_processor=processors.append), work=work), ["model"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv, verbosity=1)
