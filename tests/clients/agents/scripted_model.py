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


class ScriptedModel:
    """`script[n]` is what it answers when it is asked with the results of n calls: `("shell", COMMAND)` or `("read", PATH)`
    asks for a call, text ends the turn, `Refuse` is an error. The last entry is also that of all further steps. `hold`: the
    step whose answer waits until `released` is set, at most `hold_s` seconds. An answer takes `think_s` seconds; an error
    comes at once. `asked`: the steps it was asked, with the time.
    """

    def __init__(self, script, hold=None, hold_s=20, think_s=0.05):
        self.script, self.hold, self.hold_s, self.think_s = script, hold, hold_s, think_s
        self.reached, self.released = threading.Event(), threading.Event()
        self.asked = []

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

    def step(self, done):
        """What comes after so many results."""
        self.asked.append((done, time.monotonic()))
        if done == self.hold:
            self.reached.set()
            self.released.wait(self.hold_s)
        return self.script[min(done, len(self.script) - 1)]

    def answer(self, to, path, body):
        if path.endswith("/responses"):
            reply, refused = self.responses, "message"
            done = sum(item.get("type") == "function_call_output" for item in body["input"])
        elif path.endswith("/chat/completions"):
            reply, refused = self.chat, "message"
            done = sum(message["role"] == "tool" for message in body["messages"])
        elif path.endswith("/messages"):
            reply, refused = self.messages, "message"
            done = sum(part["type"] == "tool_result" for message in body["messages"] if isinstance(message["content"], list) for part in message["content"])
        elif "enerateContent" in path:
            reply, refused = self.gemini, "status"
            done = sum("functionResponse" in part for content in body["contents"] for part in content["parts"])
        else:
            return to.whole(404, {"error": {"message": "there is no such thing"}})
        # A title, or a question which model to use: of no turn.
        step = self.step(done) if body.get("tools") or isinstance(self.script[0], Refuse) else "A title"
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
        return reply(to, step, done, path)

    @staticmethod
    def responses(to, step, done, _):
        if isinstance(step, str):
            item = {"type": "message", "id": f"msg_{done}", "role": "assistant", "status": "completed",
                    "content": [{"type": "output_text", "text": step, "annotations": []}]}
        else:
            kind, what = step
            command = what if kind == "shell" else f"cat {what}"
            item = {"type": "function_call", "id": f"fc_{done}", "call_id": f"call_{done}", "name": "exec_command", "status": "completed",
                    "arguments": json.dumps({"cmd": command, "yield_time_ms": 30000})}
        # Servers send a call and a text in pieces, too.
        if isinstance(step, str):
            piece = {"type": "response.output_text.delta", "item_id": item["id"], "output_index": 0, "content_index": 0, "delta": step}
        else:
            piece = {"type": "response.function_call_arguments.delta", "item_id": item["id"], "output_index": 0,
                     "delta": item["arguments"]}
        response = {"id": f"resp_{done}", "object": "response", "model": "scripted", "status": "in_progress", "output": []}
        usage = {"input_tokens": 1000 + 50 * done, "output_tokens": 20, "total_tokens": 1020 + 50 * done,
                 "input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
        to.stream([{"type": "response.created", "response": response},
                   {"type": "response.output_item.added", "output_index": 0, "item": item}, piece,
                   {"type": "response.output_item.done", "output_index": 0, "item": item},
                   {"type": "response.completed", "response": response | {"status": "completed", "output": [item], "usage": usage}}])

    @staticmethod
    def chat(to, step, done, _):
        chunk = lambda delta, end=None: {
            "id": f"chat_{done}", "object": "chat.completion.chunk", "created": 1, "model": "scripted",
            "choices": [{"index": 0, "delta": delta, "finish_reason": end}]}
        usage = {"prompt_tokens": 1000 + 50 * done, "completion_tokens": 20, "total_tokens": 1020 + 50 * done}
        if isinstance(step, str):
            pieces, end = [chunk({"role": "assistant", "content": step})], "stop"
        else:
            kind, what = step
            name, given = {"shell": ("bash", {"command": what, "description": "Runs it"}), "read": ("read", {"filePath": what})}[kind]
            call = {"index": 0, "id": f"call_{done}", "type": "function", "function": {"name": name, "arguments": json.dumps(given)}}
            pieces, end = [chunk({"role": "assistant", "tool_calls": [call]})], "tool_calls"
        to.stream([*pieces, chunk({}, end) | {"usage": usage}, "[DONE]"])

    @staticmethod
    def messages(to, step, done, _):
        """In one piece."""
        if isinstance(step, str):
            block = {"type": "text", "text": step}
        else:
            kind, what = step
            name, given = {"shell": ("Bash", {"command": what, "description": "Runs it"}), "read": ("Read", {"file_path": what})}[kind]
            block = {"type": "tool_use", "id": f"toolu_{done}", "name": name, "input": given}
        to.whole(200, {"id": f"msg_{done}", "type": "message", "role": "assistant", "model": "scripted", "content": [block],
                       "stop_reason": "end_turn" if isinstance(step, str) else "tool_use",
                       "usage": {"input_tokens": 1000 + 50 * done, "output_tokens": 20}})

    @staticmethod
    def gemini(to, step, done, path):
        if isinstance(step, str):
            part = {"text": step}
        else:
            kind, what = step
            name, given = {"shell": ("run_shell_command", {"command": what, "description": "Runs it"}), "read": ("read_file", {"file_path": what})}[kind]
            part = {"functionCall": {"id": f"call_{done}", "name": name, "args": given}}
        usage = {"promptTokenCount": 1000 + 50 * done, "candidatesTokenCount": 20, "totalTokenCount": 1020 + 50 * done}
        content = {"candidates": [{"index": 0, "content": {"role": "model", "parts": [part]}, "finishReason": "STOP"}],
                   "usageMetadata": usage, "modelVersion": "scripted"}
        to.stream([content]) if "stream" in path else to.whole(200, content)
