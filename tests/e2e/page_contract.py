"""What the server promises of the dashboard's pages and files: a part of contract_test.py."""

import re


def pages_are_served(contract):
    """First of all: under which address the files are is in the page."""
    ask, same = contract.ask, contract.tally.same
    page = ask("GET", "/", status=200)
    files = re.findall(r'"(/assets/[^"]+)"', page)
    same("the page has a style, scripts and an icon", sorted({name.rpartition(".")[2] for name in files}), ["css", "js", "svg"])
    scripts = [name.rpartition("/")[2] for name in files if name.endswith(".js")]
    same("the head names the scripts of the page, and no others", [name in scripts for name in ("app.js", "list.js", "rows.js", "session.js")],
         [True, True, True, False])
    for operation in contract.specification.operations:
        if operation.path.startswith("/assets/"):
            operation.known = files[0]
        if operation.path.startswith("/schemas/"):
            operation.known = "/schemas/openapi.yaml"
    for name in files:
        ask("GET", name, status=200)
    for name in ("/assets/0123456789abcdef/app.js", files[0].rpartition("/")[0] + "/none.js", files[0] + "%2f..%2fapp.js"):
        ask("GET", name, status=404)
    document = ask("GET", "/schemas/openapi.yaml", status=200)
    referred = set(re.findall(r"\$ref: ([a-z_]+\.schema\.json)", document))
    same("the document refers to schemas", len(referred) > 3, True)
    for name in referred:
        ask("GET", f"/schemas/{name}", status=200)
    for name in ("none.json", "app.js", "store.sql", "..%2fopenapi.yaml"):
        ask("GET", f"/schemas/{name}", status=404)
    ask("GET", "/sessions/nobody", status=404)
    same("nothing stands in the page itself", re.findall(r"<style|<script>|\sstyle=|\son\w+=", page), [])
