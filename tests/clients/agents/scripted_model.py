"""A model that says what a test wrote down, on loopback: OpenAI Responses and Chat Completions, Anthropic, and Gemini."""

import http.server
import json
import threading
import time


class Refuse:
    """An answer that is an error."""

    def __init__(self, status, message, **headers):
        self.status, self.message = status, message
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


class Once:
    """An answer to the first of equal requests, and one to the others."""

    def __init__(self, first, then):
        self.first, self.then, self.given = first, then, False

    def take(self):
        self.given, was = True, self.given
        return self.then if was else self.first


class Slow:
    """A text that is written for some seconds, a word each half second."""

    def __init__(self, seconds):
        self.words = [f"word {n} " for n in range(2 * seconds)]


# How programs ask for a summary, in the place of a conversation that is too long, and what they get.
SUMMARY_WANTED = ("CRITICAL: Respond with TEXT ONLY", "CONTEXT CHECKPOINT COMPACTION", "Here is the conversation so far:",
                  "The history is being compacted")
SUMMARY = "<summary>One command ran.</summary>"
CHILD = "the part of the child"  # The task of a subagent.


class ScriptedModel:
    """`script[n]` is what it answers when it is asked with the results of n calls: `("shell", COMMAND)` or `("read", PATH)`
    asks for a call, `("asked", COMMAND)` for one that a person is to permit, `("background", COMMAND)` for one that runs on, `("child", TASK)` for a subagent, text ends the turn, `Slow`
    too, `Refuse` is an error, `Once` depends on whether it was asked before. `child`: the script of subagents. The last entry is also that of all further steps. `hold`: the
    step whose answer waits until `released` is set, at most `hold_s` seconds. An answer takes `think_s` seconds; an error
    comes at once. `asked`: the steps it was asked, with the time. `requests`: the bodies of these questions. `headers`: the names of headers of requests. With each result the prompt
    grows by `grows` tokens; `summaries`: the requests to sum it up; `called`: the calls.
    """

    def __init__(self, script, hold=None, hold_s=20, think_s=0.05, child=("echo nothing",), grows=50):
        self.script, self.hold, self.hold_s, self.think_s = script, hold, hold_s, think_s
        self.child, self.headers, self.grows = child, set(), grows
        self.reached, self.released = threading.Event(), threading.Event()
        self.asked, self.asked_children, self.requests, self.summaries, self.called = [], [], [], 0, 0

    def __enter__(self):
        model = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_GET(self):
                self.whole(404, {"error": {"message": "there is no such thing", "code": 404}})

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or "{}")
                model.headers.update(name.lower() for name in self.headers)
                try:
                    model.answer(self, self.path.partition("?")[0], body)
                except (BrokenPipeError, ConnectionResetError):
                    self.close_connection = True

            def whole(self, status, document, headers=()):
                content = json.dumps(document).encode()
                self.send_response(status)
                for name, value in [*headers, ("Content-Type", "application/json"), ("Content-Length", len(content))]:
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(content)

            def stream(self, events):
                self.send_response(200)
                self.send_header("Content-Type", "text/event-stream")
                self.send_header("Connection", "close")
                self.end_headers()
                for event in events:
                    if event is None:  # A pause of an answer that is slow.
                        self.wfile.flush()
                        time.sleep(0.5)
                        continue
                    text = event if isinstance(event, str) else json.dumps(event)
                    name = f"event: {event['type']}\n" if isinstance(event, dict) and "type" in event else ""
                    self.wfile.write(f"{name}data: {text}\n\n".encode())
                self.wfile.flush()
                self.close_connection = True

        class Quiet(http.server.ThreadingHTTPServer):
            daemon_threads = True
            handle_error = lambda *_: None  # Of clients that go away.

        self.server = Quiet(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_):
        self.released.set()
        self.server.shutdown()
        self.server.server_close()

    def step(self, done, is_child, body):
        """What comes after so many results."""
        if is_child:
            self.asked_children.append((done, time.monotonic()))
            return self.child[min(done, len(self.child) - 1)]
        self.asked.append((done, time.monotonic()))
        self.requests.append(body)
        if done == self.hold:
            self.reached.set()
            self.released.wait(self.hold_s)
        step = self.script[min(done, len(self.script) - 1)]
        step = step.take() if isinstance(step, Once) else step
        self.called += isinstance(step, tuple)
        return step

    def answer(self, to, path, body):
        if path.endswith("/responses"):
            reply, refused = self.responses, "message"
            done = sum(item.get("type") == "function_call_output" for item in body["input"])
            asked = [item for item in body["input"] if item.get("role") == "user"]
        elif path.endswith("/chat/completions"):
            reply, refused = self.chat, "message"
            done = sum(message["role"] == "tool" for message in body["messages"])
            asked = [message for message in body["messages"] if message["role"] == "user"]
        elif path.endswith("/messages"):
            reply, refused = self.messages, "message"
            parts = [part for message in body["messages"] if isinstance(message["content"], list) for part in message["content"]]
            done = sum(part["type"] == "tool_result" for part in parts)
            asked = body["messages"][:1]
        elif "enerateContent" in path:
            reply, refused = self.gemini, "status"
            parts = [part for content in body["contents"] for part in content["parts"]]
            done = sum("functionResponse" in part for part in parts)
            asked = [part for content in body["contents"] if content["role"] == "user" for part in content["parts"] if "text" in part]
        else:
            return to.whole(404, {"error": {"message": "there is no such thing"}})
        prompt = 1000 + self.grows * done
        # A title, or a question which model to use: of no turn.
        newest = json.dumps((body.get("input") or body.get("messages") or body.get("contents"))[-1])
        if any(words in newest for words in SUMMARY_WANTED):
            self.summaries += 1
            step = SUMMARY
        elif body.get("tools") or isinstance(self.script[0], Refuse):
            step = self.step(done, CHILD in json.dumps(asked), body)
        else:
            step = "A title"
        if isinstance(step, Refuse):
            error = {"code": step.status, "message": step.message, "type": "error"}
            if refused == "status":
                error["status"] = {401: "UNAUTHENTICATED", 429: "RESOURCE_EXHAUSTED"}[step.status]
                if "Retry-After" in step.headers:
                    error["details"] = [
                        {"@type": "type.googleapis.com/google.rpc.QuotaFailure",
                         "violations": [{"quotaId": "GenerateRequestsPerDayPerProjectPerModel"}]},
                        {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": step.headers["Retry-After"] + "s"}]
            return to.whole(step.status, {"error": error}, step.headers.items())
        time.sleep(self.think_s)
        return reply(to, step, done, prompt, path, body)

    @staticmethod
    def responses(to, step, done, prompt, *_):
        to.stream(response_events(step, done, prompt))

    @staticmethod
    def chat(to, step, done, prompt, _, body):
        chunk = lambda delta, end=None: {
            "id": f"chat_{done}", "object": "chat.completion.chunk", "created": 1, "model": "scripted",
            "choices": [{"index": 0, "delta": delta, "finish_reason": end}]}
        usage = {"prompt_tokens": prompt, "completion_tokens": 20, "total_tokens": prompt + 20}
        if words := words_of(step):
            pieces, end = [piece for word in words for piece in (chunk({"role": "assistant", "content": word}), None)][:-1], "stop"
        else:
            name, given = chat_call(*step, {tool["function"]["name"] for tool in body["tools"]})
            call = {"index": 0, "id": f"call_{done}", "type": "function", "function": {"name": name, "arguments": json.dumps(given)}}
            pieces, end = [chunk({"role": "assistant", "tool_calls": [call]})], "tool_calls"
        to.stream([*pieces, chunk({}, end) | {"usage": usage}, "[DONE]"])

    @staticmethod
    def messages(to, step, done, prompt, _, body):
        words, usage = words_of(step), {"input_tokens": prompt, "output_tokens": 20}
        if words:
            block, end = {"type": "text", "text": "".join(words)}, "end_turn"
        else:
            kind, what = step
            kind = "shell" if kind == "asked" else kind
            name, given = {"shell": ("Bash", {"command": what, "description": "Runs it"}), "read": ("Read", {"file_path": what}),
                           "background": ("Bash", {"command": what, "description": "Runs it", "run_in_background": True}),
                           "child": ("Agent", {"description": "Look around", "prompt": what, "subagent_type": "general-purpose"})}[kind]
            block, end = {"type": "tool_use", "id": f"toolu_{done}", "name": name, "input": given}, "tool_use"
        message = {"id": f"msg_{done}", "type": "message", "role": "assistant", "model": "scripted", "content": [block], "stop_reason": end, "usage": usage}
        if not body.get("stream"):
            return to.whole(200, message)
        begun = {"type": "text", "text": ""} if words else block | {"input": {}}
        deltas = [{"type": "text_delta", "text": word} for word in words] or [{"type": "input_json_delta", "partial_json": json.dumps(given)}]
        pieces = [piece for delta in deltas for piece in ({"type": "content_block_delta", "index": 0, "delta": delta}, None)][:-1]
        to.stream([{"type": "message_start", "message": message | {"content": [], "stop_reason": None}},
                   {"type": "content_block_start", "index": 0, "content_block": begun}, *pieces,
                   {"type": "content_block_stop", "index": 0},
                   {"type": "message_delta", "delta": {"stop_reason": end, "stop_sequence": None}, "usage": {"output_tokens": 20}},
                   {"type": "message_stop"}])

    @staticmethod
    def gemini(to, step, done, prompt, path, *_):
        usage = {"promptTokenCount": prompt, "candidatesTokenCount": 20, "totalTokenCount": prompt + 20}
        whole = lambda part, **more: {"candidates": [{"index": 0, "content": {"role": "model", "parts": [part]}} | more],
                                      "usageMetadata": usage, "modelVersion": "scripted"}
        words = words_of(step)
        if words and "stream" in path:
            pieces = [piece for word in words[:-1] for piece in (whole({"text": word}), None)]
            return to.stream([*pieces, whole({"text": words[-1]}, finishReason="STOP")])
        if words:
            part = {"text": "".join(words)}
        else:
            kind, what = step
            kind = "shell" if kind == "asked" else kind
            name, given = {"shell": ("run_shell_command", {"command": what, "description": "Runs it"}), "read": ("read_file", {"file_path": what}),
                           "background": ("run_shell_command", {"command": what, "description": "Runs it", "is_background": True}),
                           "child": ("invoke_agent", {"agent_name": "generalist", "prompt": what})}[kind]
            part = {"functionCall": {"id": f"call_{done}", "name": name, "args": given}}
        content = whole(part, finishReason="STOP")
        to.stream([content]) if "stream" in path else to.whole(200, content)


def words_of(step):
    """The pieces of a text; none of a call."""
    return step.words if isinstance(step, Slow) else [step] if isinstance(step, str) else []


def chat_call(kind, what, known):
    """The tool, and what it is given: opencode and Copilot CLI both speak Chat Completions."""
    kind = "shell" if kind == "asked" else kind
    if "view" in known:  # Copilot CLI
        shell = {"command": what, "description": "Runs it", "mode": "async" if kind == "background" else "sync", "initial_wait": 120}
        return {"shell": ("bash", shell), "background": ("bash", shell), "read": ("view", {"path": what}),
                "child": ("task", {"description": "Look around", "prompt": what, "agent_type": "task", "name": "looker"})}[kind]
    return {"shell": ("bash", {"command": what, "description": "Runs it"}), "read": ("read", {"filePath": what}),
            "background": ("bash", {"command": f"({what}) >/dev/null 2>&1 &", "description": "Runs it"}),
            "child": ("task", {"description": "Look around", "prompt": what, "subagent_type": "general"})}[kind]


def response_events(step, done, prompt=1000):
    """A stream of the Responses API."""
    words = words_of(step)
    if words:
        item = {"type": "message", "id": f"msg_{done}", "role": "assistant", "status": "completed",
                "content": [{"type": "output_text", "text": "".join(words), "annotations": []}]}
    else:
        kind, what = step
        command = f"cat {what}" if kind == "read" else what
        name, given = ("exec_command", {"cmd": command, "yield_time_ms": 250 if kind == "background" else 30000})
        if kind == "asked":
            given |= {"sandbox_permissions": "require_escalated", "justification": "Runs it"}
        if kind == "child":
            name, given = "spawn_agent", {"message": what, "task_name": "looker"}
        item = {"type": "function_call", "id": f"fc_{done}", "call_id": f"call_{done}", "name": name, "status": "completed",
                "arguments": json.dumps(given)}
        if kind == "child":
            item["namespace"] = "multi_agent_v1"
    # Servers send a call and a text in pieces, too.
    place = {"item_id": item["id"], "output_index": 0}
    if words:
        pieces = [piece for word in words for piece in ({"type": "response.output_text.delta", **place, "content_index": 0, "delta": word}, None)][:-1]
    else:
        pieces = [{"type": "response.function_call_arguments.delta", **place, "delta": item["arguments"]}]
    response = {"id": f"resp_{done}", "object": "response", "model": "scripted", "status": "in_progress", "output": []}
    usage = {"input_tokens": prompt, "output_tokens": 20, "total_tokens": prompt + 20,
             "input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    return [{"type": "response.created", "response": response},
            {"type": "response.output_item.added", "output_index": 0, "item": item}, *pieces,
            {"type": "response.output_item.done", "output_index": 0, "item": item},
            {"type": "response.completed", "response": response | {"status": "completed", "output": [item], "usage": usage}}]
