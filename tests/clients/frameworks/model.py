"""A model on loopback that asks for one call of a tool and then ends: Chat Completions, and the Messages API."""

import http.server
import json
import threading


class Model:
    """`tool` and `arguments` are the call. Requests without tools get a text. `url` ends with no slash."""

    def __init__(self, tool, arguments):
        self.tool, self.arguments, self.asked = tool, arguments, 0

    def __enter__(self):
        model = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or "{}")
                answer = model.chat if "/chat/completions" in self.path else model.messages
                whole, pieces = answer(*model.next_call(body))
                if body.get("stream"):
                    self.send("text/event-stream", "".join(pieces))
                else:
                    self.send("application/json", json.dumps(whole))

            def do_GET(self):
                self.send("application/json", '{"data": [{"id": "scripted", "object": "model"}], "object": "list"}')

            def send(self, kind, text):
                self.send_response(200)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(text.encode())))
                self.end_headers()
                self.wfile.write(text.encode())

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    def next_call(self, body):
        """The name and the arguments of the next call; no name: a text. Some frameworks end by a call of `final_answer`."""
        names = [(tool.get("function") or tool).get("name") for tool in body.get("tools") or []]
        if not names:
            return "", {}
        self.asked += 1
        if self.asked == 1:
            return self.tool, self.arguments
        return ("final_answer", {"answer": "done"}) if "final_answer" in names else ("", {})

    @staticmethod
    def chat(name, arguments):
        """The answer as a whole, and in pieces."""
        message = {"role": "assistant", "content": None if name else "done"}
        if name:
            message["tool_calls"] = [{"index": 0, "id": f"call_{name}", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}]
        end = "tool_calls" if name else "stop"
        common = {"id": "chat", "created": 1, "model": "scripted"}
        usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
        whole = {**common, "object": "chat.completion", "choices": [{"index": 0, "message": message, "finish_reason": end}], "usage": usage}
        chunks = [{"index": 0, "delta": message, "finish_reason": None}, {"index": 0, "delta": {}, "finish_reason": end}]
        pieces = [{**common, "object": "chat.completion.chunk", "choices": [one]} for one in chunks]
        pieces.append({**common, "object": "chat.completion.chunk", "choices": [], "usage": usage})
        return whole, [*(f"data: {json.dumps(piece)}\n\n" for piece in pieces), "data: [DONE]\n\n"]

    @staticmethod
    def messages(name, arguments):
        """The answer as a whole, and in pieces."""
        block = {"type": "tool_use", "id": "toolu_1", "name": name, "input": arguments} if name else {"type": "text", "text": "done"}
        end = {"stop_reason": "tool_use" if name else "end_turn", "stop_sequence": None}
        message = {"id": "msg", "type": "message", "role": "assistant", "model": "scripted", "usage": {"input_tokens": 10, "output_tokens": 5}}
        empty = {**block, "input": {}} if name else {**block, "text": ""}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(arguments)} if name else {"type": "text_delta", "text": "done"}
        pieces = [{"type": "message_start", "message": {**message, "content": [], "stop_reason": None, "stop_sequence": None}},
                  {"type": "content_block_start", "index": 0, "content_block": empty}, {"type": "content_block_delta", "index": 0, "delta": delta},
                  {"type": "content_block_stop", "index": 0}, {"type": "message_delta", "delta": end, "usage": {"output_tokens": 5}}, {"type": "message_stop"}]
        return {**message, **end, "content": [block]}, [f"event: {piece['type']}\ndata: {json.dumps(piece)}\n\n" for piece in pieces]
