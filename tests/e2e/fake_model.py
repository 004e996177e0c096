"""A model's server for tests that look at something else."""

import http.server
import json
import threading

PATIENCE_S = 30


class Model(http.server.ThreadingHTTPServer):
    """A model's server. How it answers is said by the goal of whom it is asked about."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), self.Handler)
        self.daemon_threads = True
        self.let_go = threading.Event()  # Until then, those who wait get no answer.
        threading.Thread(target=self.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server_port}/v1"

    def handle_error(self, *_):
        """Who asked is gone: of no interest here."""

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_):
            pass

        def say(self, status, value):
            body = json.dumps(value).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_GET(self):
            self.say(404, {"detail": "Not Found"})

        def do_POST(self):
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            goal = json.loads(asked["messages"][-1]["content"])["goal"]
            if goal == "waits":
                self.server.let_go.wait(PATIENCE_S)
            if goal == "is not allowed":
                return self.say(401, {"error": {"message": "no", "type": "authentication_error"}})
            text = {"loops": '{"status": "B", "reason": "reads the same file again"}',
                    "waits": "A: it waits"}.get(goal, "well, who knows")
            message = {"role": "assistant", "content": text}
            self.say(200, {"object": "chat.completion", "model": "fake",
                           "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})
