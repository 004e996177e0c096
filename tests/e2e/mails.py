"""An SMTP server for tests of alerts by mail."""

import pathlib
import queue
import socket
import ssl

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult

TLS = pathlib.Path(__file__).parent.parent / "data" / "tls"


class Mails:
    """An SMTP server that speaks TLS and wants a login."""

    def __init__(self, implicit):
        self.mails, self.refusals = queue.Queue(), []
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(TLS / "cert.pem", TLS / "key.pem")
        outer = self

        class Handler:
            async def handle_DATA(self, server, session, envelope):
                if outer.refusals:
                    return outer.refusals.pop(0)
                outer.mails.put((envelope.mail_from, envelope.rcpt_tos, envelope.content, implicit or session.ssl is not None))
                return "250 taken"

        def authenticate(server, session, envelope, mechanism, data):
            return AuthResult(success=(data.login, data.password) == (b"alerts", b"pass:word1"))

        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        options = {"hostname": "127.0.0.1", "port": port, "authenticator": authenticate, "auth_required": True}
        if implicit:
            options |= {"ssl_context": context, "auth_require_tls": False}
        else:
            options |= {"tls_context": context, "require_starttls": True}
        self.controller = Controller(Handler(), **options)
        self.url = f"{'smtps' if implicit else 'smtp'}://localhost:{port}"

    def __enter__(self):
        self.controller.start()
        return self

    def __exit__(self, *_):
        self.controller.stop()
