"""Asks by HTTP clients of Python, and by curl. Each line of standard input is `{id, client, url, body}`; each line of
standard output `{id, status, text}`, as it comes."""

import asyncio
import concurrent.futures
import gzip
import http.client
import json
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

    def ask(job):
        try:
            status, data = CLIENTS[job["client"]](job["url"], job["body"].encode())
            told = {"id": job["id"], "status": status, "text": data.decode()}
        except Exception as error:  # the test shows it
            told = {"id": job["id"], "status": 0, "text": f"{type(error).__name__}: {error} {getattr(error, 'stderr', '')}"}
        with writing:
            print(json.dumps(told), flush=True)

    with concurrent.futures.ThreadPoolExecutor(256) as pool:
        for line in sys.stdin:
            pool.submit(ask, json.loads(line))


main()
