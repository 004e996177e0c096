"""Asks by HTTP clients of Python, and by curl. Each line of standard input has an id, a client, a URL and a body, with
tabs between them; each line of standard output the id, a status and the text in base64, as it comes."""

import asyncio
import base64
import concurrent.futures
import gzip
import http.client
import subprocess
import sys
import threading
import urllib.parse

import aiohttp
import httpx
import requests

PATIENCE_S = 120
HEADERS = {"Content-Type": "application/json"}


def by_http_client(url, body):
    parts = urllib.parse.urlsplit(url)
    connection = http.client.HTTPConnection(parts.netloc, timeout=PATIENCE_S)
    connection.request("POST", parts.path, body, HEADERS)
    answer = connection.getresponse()
    data = answer.read()
    connection.close()
    return answer.status, gzip.decompress(data) if answer.headers.get("Content-Encoding") == "gzip" else data


def by_httpx(url, body):
    with httpx.Client(timeout=PATIENCE_S, trust_env=False) as client, client.stream("POST", url, content=body, headers=HEADERS) as answer:
        return answer.status_code, b"".join(answer.iter_bytes())


def by_requests(url, body):
    session = requests.Session()
    session.trust_env = False
    with session, session.post(url, data=body, headers=HEADERS, stream=True, timeout=PATIENCE_S) as answer:
        return answer.status_code, b"".join(answer.iter_content(None))


def by_aiohttp(url, body):
    async def ask():
        limit = aiohttp.ClientTimeout(total=PATIENCE_S)
        async with aiohttp.ClientSession(timeout=limit) as client, client.post(url, data=body, headers=HEADERS) as answer:
            return answer.status, b"".join([piece async for piece in answer.content.iter_any()])
    return asyncio.run(ask())


def by_curl(url, body, *more):
    words = ["curl", "-q", "--noproxy", "*", "--silent", "--show-error", "--no-buffer", "--compressed", "--max-time", str(PATIENCE_S), *more,
             "--header", "Content-Type: application/json", "--data-binary", "@-", "--write-out", "\n%{http_code}", url]
    done = subprocess.run(words, input=body, capture_output=True, check=True)
    text, _, status = done.stdout.rpartition(b"\n")
    return int(status), text


CLIENTS = {
    "http.client": by_http_client,
    "httpx": by_httpx,
    "requests": by_requests,
    "aiohttp": by_aiohttp,
    "curl": by_curl,
    "curl that offers HTTP/2": lambda url, body: by_curl(url, body, "--http2"),
}


def main():
    writing = threading.Lock()

    def ask(number, client, url, body):
        try:
            status, data = CLIENTS[client](url, body.encode())
        except Exception as error:  # the test shows it
            status, data = 0, f"{type(error).__name__}: {error} {getattr(error, 'stderr', '')}".encode()
        with writing:
            print(number, status, base64.b64encode(data).decode(), sep="\t", flush=True)

    with concurrent.futures.ThreadPoolExecutor(256) as pool:
        for line in sys.stdin:
            pool.submit(ask, *line.rstrip("\n").split("\t"))


main()
