"""What answers where a monitor should: wrongly, late, or with an error."""

import http.server
import json
import threading


class FalseMonitor:
    """Answers each report with the next of `answers`, the last over and over: a status, "garbage" or "html".

    What was answered with 200, or refused with a status, is in `batches`. An event whose type is `poison` is answered with
    `poison_status`, without saying which it was.
    """

    def __init__(self, answers=(200,), poison=None, body=b'{"accepted":1,"directive":null}'):
        self.body = body  # of an answer to reports
        self.answers, self.poison, self.poison_status = list(answers), poison, 400
        self.batches, self.asked = [], threading.Event()

    def __enter__(self, port=0):
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                outer.asked.set()
                if self.path.endswith("/events"):
                    outer.answer(self, body)
                else:
                    outer.send(self, 201, b"{}")

            def do_GET(self):
                outer.send(self, 200, b"{}")

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def answer(self, handler, events):
        if any(self.poison and event.get("type") == self.poison for event in events):
            return self.send(handler, self.poison_status, b'{"error":{"code":"malformed","message":"bad"}}')
        what = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if what == "garbage":
            handler.wfile.write(b"\0\1\2 this is no HTTP")
            handler.close_connection = True
        elif what == "html":
            self.send(handler, 200, b"<html>Welcome to the hotel's network</html>")
        else:
            if what != 503:
                self.batches.append(events)
            self.send(handler, what, self.body)

    @staticmethod
    def send(handler, status, body):
        handler.send_response(status)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()
