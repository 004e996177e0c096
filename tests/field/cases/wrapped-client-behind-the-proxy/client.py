import json
import sys
import time
import urllib.request

time.sleep(0.5)  # as clients do, it takes a moment before it asks
body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "Name an apple"}], "metadata": {"user_id": "user_1_account__session_0fff1111-1111-4222-8333-444444444444"}}
request = urllib.request.Request(sys.argv[1] + "/v1/messages", json.dumps(body).encode(), {
    "Content-Type": "application/json", "User-Agent": "claude-cli/2.1.197 (external, cli)", "X-Claude-Code-Session-Id": "0fff1111-1111-4222-8333-444444444444"})
print("answered", urllib.request.urlopen(request).status, flush=True)
