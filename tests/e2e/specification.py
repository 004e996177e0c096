"""The files in schemas/: read, looked up in, and checked for what they lack."""

import json
import re
import urllib.parse
import warnings

import jsonschema
import yaml

warnings.simplefilter("ignore", DeprecationWarning)

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE")


def objects_in(value, place=""):
    """Place and value of every object in a JSON value; not where the user chooses the fields."""
    if isinstance(value, dict):
        yield place, value
        for name, member in value.items():
            if name not in ("args", "data", "labels", "counters"):
                yield from objects_in(member, f"{place}.{name}")
    elif isinstance(value, list):
        for member in value:
            yield from objects_in(member, place + "[]")


def empty_members(page):
    """The members of stored events that should be absent. A schema cannot say that and refuse unknown members too."""
    may_be_empty = {"args", "data", "confidence", "reason", "limit", "boot_id", "host"}
    events = page.get("events", []) if isinstance(page, dict) else []
    return [f"{name} is null or empty" for event in events for name in event.keys() - may_be_empty if event[name] in (None, "")]


class Operation:
    """One method of one path."""

    def __init__(self, specification, path, method, item, node):
        self.path, self.method, self.node = path, method.upper(), node
        self.known = None  # A target that only the server could tell.
        look = specification.look
        self.parameters = [look(p) for p in item.get("parameters", []) + node.get("parameters", [])]
        self.query = {p["name"]: p for p in self.parameters if p["in"] == "query"}
        self.body = look(node["requestBody"]) if "requestBody" in node else None
        self.responses = {status: look(r) for status, r in node["responses"].items()}

    def __str__(self):
        return f"{self.method} {self.path}"

    def sample(self):
        """A target that this operation answers."""
        if self.known:
            return self.known
        needed = [f"{name}=sample" for name, p in self.query.items() if p.get("required")]
        own = "over" if self.path.endswith("/wait") else "sample"  # It has ended, so nothing is left to wait for.
        return re.sub(r"{\w+}", own, self.path) + ("?" + "&".join(needed) if needed else "")


class Specification:
    """The OpenAPI file and the schemas beside it."""

    def __init__(self, folder):
        self.uri = (folder / "openapi.yaml").as_uri()
        self.documents = {self.uri: yaml.safe_load((folder / "openapi.yaml").read_text())}
        for file in sorted(folder.glob("*.schema.json")):
            self.documents[file.as_uri()] = json.loads(file.read_text())
        self.root = self.documents[self.uri]
        self.operations = [Operation(self, path, method, item, node) for path, item in self.root["paths"].items()
                           for method, node in item.items() if method.upper() in METHODS]

    def resolver(self, uri):
        return jsonschema.RefResolver(uri, self.documents[uri], store=self.documents)

    def look(self, node):
        return self.resolver(self.uri).resolve(node["$ref"])[1] if "$ref" in node else node

    def file(self, name):
        return self.documents[self.uri.rsplit("/", 1)[0] + "/" + name]

    def faults_of(self, value, schema, uri=None):
        """Why the value is not as the schema says."""
        validator = jsonschema.Draft202012Validator(schema, resolver=self.resolver(uri or self.uri))
        return [f"{error.json_path}: {error.message[:300]}" for error in validator.iter_errors(value)]

    def at(self, target):
        """The operations of the path that is asked for."""
        path = urllib.parse.unquote(target.split("?")[0])
        return [operation for operation in self.operations
                if re.fullmatch(re.sub(r"\\\{\w+\\\}", "[^/]+", re.escape(operation.path)), path)]


def lint(specification):
    """What is wrong with the files: ill-formed, referring to nothing, unused, unexplained."""
    root, used = specification.root, set()
    if not re.fullmatch(r"3\.1\.\d+", root["openapi"]) or not {"title", "version", "description"} <= root["info"].keys():
        yield "openapi.yaml does not begin as it should"
    for uri, document in specification.documents.items():
        place = uri.rsplit("/", 1)[1]
        yield from lint_node(specification, document, uri, place, used)
        if uri != specification.uri:
            yield from lint_schema(specification, document, uri, place)
            yield from [f"{place}: no {name}" for name in ("$schema", "description") if name not in document]
    parts = {uri.rsplit("/", 1)[1] for uri in specification.documents if uri != specification.uri}
    for kind in ("parameters", "responses", "schemas"):
        parts |= {f"#/components/{kind}/{name}" for name in root["components"][kind]}
    yield from (f"{part} is used nowhere" for part in parts - used)
    for operation in specification.operations:
        lacks = [name for name in ("operationId", "summary", "description", "responses") if not operation.node.get(name)]
        lacks += [f"description or schema of {p['name']}" for p in operation.parameters
                  if not p.get("description") or "schema" not in p]
        lacks += [f"description or content of {status}" for status, response in operation.responses.items()
                  if not response.get("description") or "content" not in response]
        in_path = {p["name"] for p in operation.parameters if p["in"] == "path" and p.get("required")}
        lacks += in_path ^ set(re.findall(r"\{(\w+)\}", operation.path))
        schemes = {name for rule in operation.node.get("security", root["security"]) for name in rule}
        lacks += schemes - root["components"]["securitySchemes"].keys()
        yield from (f"{operation} lacks {what}" for what in lacks)


def lint_node(specification, node, uri, place, used, explained=True):
    for at, member in enumerate(node) if isinstance(node, list) else ():
        yield from lint_node(specification, member, uri, f"{place}/{at}", used, explained)
    if not isinstance(node, dict):
        return
    if isinstance(node.get("$ref"), str):
        used.add(node["$ref"])
        explained = False  # what stands beside it is about fields that are explained there
        try:
            specification.resolver(uri).resolve(node["$ref"])
        except jsonschema.RefResolutionError:
            yield f"{place}: {node['$ref']} leads nowhere"
    fields = node.get("properties") if explained else None
    yield from (f"{place}: {name} has no description" for name, field in (fields or {}).items()
                if not field.get("description"))
    for name, member in node.items():
        if name in ("examples", "const", "enum", "default"):
            continue
        rule = name in ("if", "then", "else", "allOf", "anyOf", "not", "dependentSchemas")
        yield from lint_node(specification, member, uri, f"{place}/{name}", used, explained and not rule)
        if name == "schema" or place.endswith("components/schemas"):
            yield from lint_schema(specification, member, uri, f"{place}/{name}")


def lint_schema(specification, schema, uri, place):
    try:
        jsonschema.Draft202012Validator.check_schema(schema)
    except jsonschema.SchemaError as error:
        yield f"{place}: no schema: {error.message}"
    for example in schema.get("examples", []) + ([schema["default"]] if "default" in schema else []):
        yield from (f"{place}: its example: {fault}" for fault in specification.faults_of(example, schema, uri))
