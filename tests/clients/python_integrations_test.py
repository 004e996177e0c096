#!/usr/bin/python3
"""The modules for frameworks, against stand-ins that have the documented interfaces and nothing else."""

import asyncio
import contextlib
import dataclasses
import importlib
import pathlib
import sys
import threading
import unittest

from framework_stand_ins import Thing, stand_in
from python_case import CLIENT, PATIENCE_S, WithMonitor
from watchdog_client import Cancelled
import watchdog_client.integrations


class Integrations(WithMonitor):
    def setUp(self):
        super().setUp()
        self.watchdog = self.reporter(interval_s=0)

    def load(self, name):
        return importlib.import_module(f"watchdog_client.integrations.{name}")

    def seen(self):
        self.assertTrue(self.watchdog.flush(PATIENCE_S))
        self.assertEqual(self.watchdog.rejected, 0)
        return [(event["kind"], event.get("name") or event.get("phase") or event.get("type") or "", event.get("args", event.get("text", event.get("data"))))
                for event in self.told() if event["kind"] != "start"]

    def cancel(self):
        self.watchdog.cancel = {"by": "ann", "reason": "enough"}

    CALLS = [("heartbeat", "model", None), ("tool_call", "search", {"query": "x"}), ("tool_result", "search", "found"),
             ("tool_call", "search", {"query": "y"}), ("error", "search", "ValueError: ValueError('no')")]

    def test_langchain_and_langgraph(self):
        class BaseCallbackHandler:
            raise_error = run_inline = False
        stand_in("langchain_core.callbacks", BaseCallbackHandler=BaseCallbackHandler)
        one = self.load("langchain").WatchdogCallbacks(self.watchdog)
        one.on_chain_start({}, {}, run_id=1, parent_run_id=None, tags=[], metadata={}, name="LangGraph")
        node = {"langgraph_node": "agent", "langgraph_step": 1, "langgraph_checkpoint_ns": "agent:1", "thread_id": "t"}
        one.on_chain_start(None, {}, run_id=2, parent_run_id=1, metadata=node, name="agent")
        one.on_chain_start(None, {}, run_id=3, parent_run_id=2, metadata=node, name="RunnableSequence")
        one.on_chat_model_start({}, [[]], run_id=4, parent_run_id=2, metadata=node)
        one.on_llm_error(ValueError("busy"), run_id=4)
        one.on_chain_start(None, {}, run_id=5, parent_run_id=1, metadata={**node, "langgraph_node": "tools", "langgraph_step": 2}, name="tools")
        one.on_tool_start({"name": "search"}, "{'query': 'x'}", run_id=6, parent_run_id=5, inputs={"query": "x"}, metadata=node)
        one.on_tool_end(Thing(content="found"), run_id=6, parent_run_id=5)
        one.on_tool_start(None, "y", run_id=7, name="search")
        one.on_tool_error(ValueError("no"), run_id=7)
        self.assertEqual(self.seen(), [("heartbeat", "agent", None), ("error", "model", "ValueError: ValueError('busy')"), ("heartbeat", "tools", None),
                                       *self.CALLS[1:3], ("tool_call", "search", "y"), self.CALLS[4]])
        self.assertEqual([event["iteration"] for event in self.told("heartbeat")], [1, 2])
        one.on_llm_new_token("a", run_id=4)
        self.assertTrue(one.run_inline)
        self.cancel()
        self.assertRaises(Cancelled, one.on_llm_start, {}, ["prompt"], run_id=8)

    def test_openai_agents(self):
        stand_in("agents", RunHooks=type("RunHooks", (), {}))
        one = self.load("openai_agents").WatchdogHooks(self.watchdog)
        agent, tool = Thing(name="model"), Thing(name="search")

        async def run():
            await one.on_llm_start(Thing(), agent, None, [])
            call = Thing(tool_call_id="c1", tool_arguments='{"query":"x"}')
            await one.on_tool_start(call, agent, tool)
            await one.on_tool_end(call, agent, tool, "found")
            await one.on_handoff(Thing(), agent, Thing(name="writer"))
            old = Thing()  # Older versions give no id.
            await one.on_tool_start(old, agent, tool)
            await one.on_tool_end(old, agent, tool, "found")
            self.cancel()
            await one.on_llm_start(Thing(), agent, None, [])
        self.assertRaises(Cancelled, asyncio.run, run())
        self.assertEqual(self.seen()[:-1], [*self.CALLS[:3], ("state_change", "handoff", {"from": "model", "to": "writer"}), ("tool_call", "search", None), self.CALLS[2]])

    def test_crewai(self):
        class Bus:
            handlers = {}

            def on(self, kind):
                return lambda handler: self.handlers.setdefault(kind, handler)

            def emit(self, kind, **facts):
                thread = threading.Thread(target=self.handlers[kind], args=[None, Thing(**facts)])
                thread.start()
                thread.join()
        bus = Bus()

        class BaseEventListener:
            def __init__(self):
                self.setup_listeners(bus)
        kinds = {name: type(name, (), {}) for name in ("LLMCallStartedEvent", "TaskCompletedEvent", "ToolUsageErrorEvent", "ToolUsageFinishedEvent", "ToolUsageStartedEvent")}
        stand_in("crewai.events", BaseEventListener=BaseEventListener, **kinds)
        self.load("crewai").WatchdogListener(self.watchdog)
        bus.emit(kinds["LLMCallStartedEvent"], agent_role="model")
        bus.emit(kinds["ToolUsageStartedEvent"], event_id="e1", tool_name="search", tool_args={"query": "x"})
        bus.emit(kinds["ToolUsageFinishedEvent"], started_event_id="e1", tool_name="search", tool_args={"query": "x"}, output="found")
        bus.emit(kinds["ToolUsageStartedEvent"], tool_name="search", tool_args={"query": "y"})
        bus.emit(kinds["ToolUsageErrorEvent"], tool_name="search", tool_args={"query": "y"}, error=ValueError("no"))
        bus.emit(kinds["TaskCompletedEvent"], task_name="plan", output="done")
        self.assertEqual(self.seen(), [*self.CALLS, ("state_change", "task_completed", {"task": "plan", "output": "done"})])
        self.cancel()
        bus.emit(kinds["LLMCallStartedEvent"])

    def test_pydantic_ai(self):
        handle = self.load("pydantic_ai").watchdog_events(self.watchdog)

        async def stream(*events):
            for event in events:
                yield event

        async def run():
            await handle(Thing(), stream(Thing(event_kind="part_start"), Thing(event_kind="part_delta"), Thing(event_kind="final_result")))
            await handle(Thing(), stream(
                Thing(event_kind="function_tool_call", part=Thing(tool_call_id="1", tool_name="search", args={"query": "x"})),
                Thing(event_kind="function_tool_result", result=Thing(tool_call_id="1", part_kind="tool-return", content="found")),
                Thing(event_kind="function_tool_call", part=Thing(tool_call_id="2", tool_name="search", args={"query": "y"})),
                Thing(event_kind="function_tool_result", part=Thing(tool_call_id="2", part_kind="retry-prompt", content="no"))))
        asyncio.run(run())
        self.watchdog.completed()
        self.assertEqual([one for one in self.seen() if one[:2] != ("heartbeat", "") and one[0] != "end"], [*self.CALLS[:4], ("error", "search", "no")])
        self.assertEqual([event["counters"] for event in self.told("heartbeat") if "counters" in event], [{"pieces": 1}])

    def test_smolagents(self):
        class ActionStep(Thing):
            pass

        class Registry:
            def __init__(self):
                self.callbacks = []

            def register(self, kind, callback):
                self.callbacks.append((kind, callback))

        class Tool:
            def forward(self, query):
                if query == "y":
                    raise ValueError("no")
                return "found"

            def __call__(self, *args, **kwargs):
                return self.forward(*args, **kwargs)
        stand_in("smolagents", ActionStep=ActionStep)
        module = self.load("smolagents")
        for callbacks in (Registry(), []):
            agent = Thing(tools={"search": Tool()}, step_callbacks=callbacks)
            self.assertIs(module.watch(agent, self.watchdog), agent)
        self.assertEqual(agent.tools["search"](query="x"), "found")
        self.assertRaises(ValueError, agent.tools["search"], query="y")
        on_step = agent.step_callbacks[0]
        on_step(ActionStep(step_number=1, error=None, observations="seen", action_output=None), agent=agent)
        on_step(ActionStep(step_number=2, error=RuntimeError("bad"), observations=None, action_output=None))
        self.assertEqual(self.seen(), [*self.CALLS[1:], ("state_change", "step", "seen"), ("heartbeat", "step", None), ("error", "step", "bad"), ("heartbeat", "step", None)])

    def test_agent_framework(self):
        stand_in("agent_framework", ChatMiddleware=type("ChatMiddleware", (), {}), FunctionMiddleware=type("FunctionMiddleware", (), {}))
        requests, calls = self.load("agent_framework").watchdog_middleware(self.watchdog)
        MiddlewareTermination = type("MiddlewareTermination", (Exception,), {})

        async def run():
            async def nothing():
                pass
            await requests.process(Thing(), nothing)
            for query, error in (("x", None), ("y", ValueError("no")), ("x", MiddlewareTermination())):
                context = Thing(function=Thing(name="search"), arguments={"query": query}, result=None)

                async def invoke():
                    context.result = "found"
                    if error:
                        raise error
                with contextlib.suppress(ValueError, MiddlewareTermination):
                    await calls.process(context, invoke)
            self.cancel()
            await requests.process(Thing(), nothing)
        self.assertRaises(Cancelled, asyncio.run, run())
        self.assertEqual(self.seen()[:-1], [*self.CALLS, *self.CALLS[1:3]])

    def test_claude_agent_sdk(self):
        @dataclasses.dataclass
        class HookMatcher:
            matcher: object = None
            hooks: list = dataclasses.field(default_factory=list)
        stand_in("claude_agent_sdk", HookMatcher=HookMatcher)
        hooks = self.load("claude_agent_sdk").watchdog_hooks(self.watchdog)

        async def emit(name, tool_use_id=None, **facts):
            return await hooks[name][0].hooks[0]({"hook_event_name": name, "session_id": "s", **facts}, tool_use_id, {"signal": None})

        async def run():
            await emit("UserPromptSubmit", prompt="plan")
            for number, query in enumerate("xy"):
                self.assertEqual(await emit("PreToolUse", f"t{number}", tool_name="search", tool_input={"query": query}), {})
                more = {"tool_response": "found"} if query == "x" else {"error": "no"}
                await emit("PostToolUse" if query == "x" else "PostToolUseFailure", f"t{number}", tool_name="search", tool_input={"query": query}, **more)
            self.cancel()
            answer = await emit("PreToolUse", "t3", tool_name="search", tool_input={})
            self.assertEqual((answer["continue_"], answer["hookSpecificOutput"]["permissionDecision"]), (False, "deny"))
        asyncio.run(run())
        step = ("heartbeat", "tools", None)
        self.assertEqual(self.seen(), [("user_input", "", "plan"), step, *self.CALLS[1:3], step, self.CALLS[3], ("error", "search", "no")])

    def test_google_adk(self):
        class BasePlugin:
            def __init__(self, name):
                self.name = name
        stand_in("google.adk.plugins.base_plugin", BasePlugin=BasePlugin)
        plugin = self.load("google_adk").WatchdogPlugin(self.watchdog)

        async def run():
            self.assertIsNone(await plugin.before_model_callback(callback_context=Thing(agent_name="model"), llm_request=Thing()))
            for number, query in enumerate("xy"):
                call = {"tool": Thing(name="search"), "tool_args": {"query": query}, "tool_context": Thing(function_call_id=str(number))}
                self.assertIsNone(await plugin.before_tool_callback(**call))
                if query == "x":
                    self.assertIsNone(await plugin.after_tool_callback(**call, result="found"))
                else:
                    self.assertIsNone(await plugin.on_tool_error_callback(**call, error=ValueError("no")))
            self.cancel()
            await plugin.before_model_callback(callback_context=Thing(), llm_request=Thing())
        self.assertRaises(Cancelled, asyncio.run, run())
        self.assertEqual((self.seen()[:-1], plugin.name), (self.CALLS, "watchdog"))

    def test_strands(self):
        kinds = {name: type(name, (Thing,), {}) for name in ("AfterToolCallEvent", "BeforeModelCallEvent", "BeforeToolCallEvent")}
        stand_in("strands.hooks", **kinds)
        registry = {}
        self.load("strands").WatchdogHooks(self.watchdog).register_hooks(Thing(add_callback=registry.__setitem__))

        def emit(name, **facts):
            event = kinds[name](agent=Thing(name="model"), **facts)
            registry[kinds[name]](event)
            return event
        emit("BeforeModelCallEvent")
        for number, query in enumerate("xy"):
            use = {"toolUseId": str(number), "name": "search", "input": {"query": query}}
            self.assertFalse(emit("BeforeToolCallEvent", tool_use=use, cancel_tool=False).cancel_tool)
            emit("AfterToolCallEvent", tool_use=use, result={"status": "success", "content": "found"} if query == "x" else {"status": "error", "content": []},
                 exception=None if query == "x" else ValueError("no"))
        self.assertEqual(self.seen(), self.CALLS)
        self.cancel()
        self.assertTrue(emit("BeforeToolCallEvent", tool_use=use, cancel_tool=False).cancel_tool)
        self.assertRaises(Cancelled, emit, "BeforeModelCallEvent")

    def test_opentelemetry_shows_a_call_while_it_runs(self):
        stand_in("opentelemetry.sdk.trace", SpanProcessor=type("SpanProcessor", (), {}))
        spans = self.load("opentelemetry").WatchdogSpans(self.watchdog)
        numbers = iter(range(1, 100))

        def span(name, attributes, error=None):
            return Thing(name=name, attributes=attributes, context=Thing(span_id=next(numbers)),
                         status=Thing(status_code=Thing(name="ERROR" if error else "UNSET"), description=error))
        model = span("chat gpt", {"gen_ai.operation.name": "chat"})
        call = span("execute_tool search", {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search", "gen_ai.tool.call.arguments": '{"query":"x"}'})
        spans.on_start(model, None)
        spans.on_start(call, None)
        self.assertEqual(self.seen(), [("heartbeat", "model", None), self.CALLS[1]])
        call.attributes["gen_ai.tool.call.result"] = "found"
        spans.on_end(call)
        spans.on_end(model)
        late = span("search", {}, "no")
        spans.on_start(late)
        late.attributes = {"openinference.span.kind": "TOOL", "tool.name": "search", "input.value": "y"}
        spans.on_end(late)
        other = span("GET /", None)
        spans.on_start(other)
        spans.on_end(other)
        self.assertEqual(self.seen()[2:], [("tool_result", "search", "found"), ("tool_call", "search", "y"), ("error", "search", "no")])

    def test_each_module_says_how_it_was_tested_and_reports_to_the_current_reporter(self):
        for path in sorted(pathlib.Path(CLIENT, "watchdog_client", "integrations").glob("[a-z]*.py")):
            self.assertIn("Tested against a stand-in written from the documented interface, not against the package.", path.read_text().split("\n")[0], path)
        reports = watchdog_client.integrations.Reports()
        with self.watchdog:
            reports.begin("c", "search", {"query": "x"})
            reports.end("c", "found")
            reports.end("unknown", "found")
        reports.begin("d", "search")
        reports.step("model")
        self.assertEqual(self.seen()[:2], self.CALLS[1:3])


if __name__ == "__main__":
    unittest.main(argv=sys.argv, verbosity=1)
